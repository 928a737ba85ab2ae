import { type TSchema, Type } from '@sinclair/typebox'
import { AppError, type FieldProblem, type FieldProblems, problem } from '../../lib/errors.ts'
import { parseId } from '../../lib/ids.ts'
import { textProblem } from '../../lib/text.ts'
import { ticketCategories, ticketPriorities, ticketStatuses } from '../../lib/vocabulary.ts'
import type { TicketFilter } from './desk-store.ts'
import { OneOfCategories, OneOfPriorities, OneOfStatuses } from './model.ts'

const longestSearch = 200

/** What the desk's list can be asked for, for the API description; `deskQuery` reads it. */
export const deskQuerySchema: Record<string, TSchema> = {
  status: OneOfStatuses,
  priority: OneOfPriorities,
  category: OneOfCategories,
  assignee_id: Type.String({ description: 'The id of an admin, `me`, or `none`.' }),
  user_id: Type.String({ description: 'The id of who opened the ticket.' }),
  q: Type.String({
    maxLength: longestSearch,
    description:
      'Words that are all in the ticket, the last one as a beginning; accents and case do not matter. ' +
      'Newest ticket first; `total` counts up to 200, where pages by number end and the cursor form goes on.',
  }),
}

/** @param adminId who asks, for `me`
 *  @throws validation_error naming each bad parameter */
export function deskQuery(query: Record<string, unknown>, adminId: string) {
  const problems: FieldProblems = {}

  function read<T>(name: string, parse: (text: string) => T | FieldProblem): T | undefined {
    const text = query[name]
    if (text === undefined) return undefined
    const value = typeof text === 'string' ? parse(text) : problem('not_a_string')
    if (!isProblem(value)) return value
    problems[name] = value
    return undefined
  }

  const filter: TicketFilter = {
    status: read('status', oneOf(ticketStatuses)),
    priority: read('priority', oneOf(ticketPriorities)),
    category: read('category', oneOf(ticketCategories)),
    assigneeId: read('assignee_id', (text) => {
      if (text === 'none') return null
      return text === 'me' ? adminId : idOf(text)
    }),
    userId: read('user_id', idOf),
  }
  const q = read('q', (text) => textProblem(text, { max: longestSearch }) ?? text)
  if (Object.keys(problems).length > 0) {
    throw new AppError('validation_error', { details: problems })
  }
  return { filter, q }
}

function idOf(text: string): string | FieldProblem {
  return parseId(text) ?? problem('id')
}

function oneOf<T extends string>(values: readonly T[]) {
  return (text: string): T | FieldProblem =>
    values.find((value) => value === text) ?? problem('one_of', values.join(', '))
}

function isProblem(value: unknown): value is FieldProblem {
  return typeof value === 'object' && value !== null
}
