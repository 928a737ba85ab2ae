import { type Static, Type } from '@sinclair/typebox'
import { AppError, errorCodes, type FieldProblem } from './errors.ts'
import { formatLocale, type Locale, texts } from './i18n.ts'

export const ErrorBody = Type.Object(
  {
    error: Type.Object(
      {
        code: Type.Union(
          errorCodes.map((code) => Type.Literal(code)),
          { title: 'ErrorCode' },
        ),
        message: Type.String({ description: 'For people, in the language of Accept-Language.' }),
        details: Type.Union([Type.Record(Type.String(), Type.String()), Type.Null()], {
          description:
            'When the code is validation_error, each wrong field by its path, such as `body`, `data.amount` or `user_ids.3`, to its message; else null.',
        }),
      },
      { title: 'ErrorInfo' },
    ),
  },
  { title: 'ErrorBody' },
)
export type ErrorBody = Static<typeof ErrorBody>

export function errorBody(error: AppError, locale: Locale): ErrorBody {
  const { errors, fields } = texts[locale]
  const text = ({ key, value = '' }: FieldProblem) => fields[key].replace('{value}', String(value))
  const message = errors[error.kind]
    .replace('{value}', error.value)
    .replace('{when}', () => relativeTime(error.retryAfterSeconds ?? 60, locale))
  const problems = Object.entries(error.details ?? {}).map(([name, it]) => [name, text(it)])
  const details = error.details && Object.fromEntries(problems)
  return { error: { code: error.code, message, details } }
}

export function asAppError(error: unknown): AppError {
  return error instanceof AppError ? error : new AppError('internal_error', { cause: error })
}

function relativeTime(seconds: number, locale: Locale): string {
  const format = new Intl.RelativeTimeFormat(formatLocale(locale))
  if (seconds < 120) return format.format(seconds, 'second')
  if (seconds < 7_200) return format.format(Math.ceil(seconds / 60), 'minute')
  return format.format(Math.ceil(seconds / 3_600), 'hour')
}
