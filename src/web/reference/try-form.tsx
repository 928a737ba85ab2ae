import { useState } from 'preact/hooks'
import { errorText } from '../ui/errors.ts'
import { Field } from '../ui/field.tsx'
import type { OperationEntry } from './contents.ts'
import type { Parameter } from './documents.ts'
import { exampleBody, exampleOf, parametersIn } from './request-code.ts'
import { resolve } from './schema.ts'
import { CallerLine } from './try-caller.tsx'
import { ResponseView } from './try-response.tsx'
import { isBusy, sendTry, type TryRequest, type TryResponse } from './try-session.ts'

export function TryForm({ entry }: { entry: OperationEntry }) {
  const [response, setResponse] = useState<TryResponse>()
  const [problem, setProblem] = useState<string>()
  const [isSending, setSending] = useState(false)

  async function submit(event: SubmitEvent) {
    event.preventDefault()
    if (isBusy.value) return
    setSending(true)
    setProblem(undefined)
    try {
      const data = new FormData(event.currentTarget as HTMLFormElement)
      setResponse(await sendTry(requestOf(entry, data)))
    } catch (error) {
      setResponse(undefined)
      setProblem(
        error instanceof SyntaxError ? 'The body is not valid JSON.' : errorText(error).text,
      )
    }
    setSending(false)
  }

  return (
    <>
      <form class="try" onSubmit={submit} aria-label={`Try: ${entry.title}`}>
        <CallerLine />
        {entry.operation.parameters?.map((parameter) => (
          <ParameterField key={parameter.name} parameter={parameter} />
        ))}
        <BodyField entry={entry} />
        {entry.method !== 'GET' && (
          <p class="small soft">This sends a real request and changes data.</p>
        )}
        <p class="error" role="alert">
          {problem}
        </p>
        <button type="submit" class="button primary" disabled={isBusy.value}>
          {isSending ? 'Sending…' : `Send ${entry.method}`}
        </button>
      </form>
      <div role="status">{response && <ResponseView response={response} />}</div>
    </>
  )
}

function ParameterField({ parameter }: { parameter: Parameter }) {
  const { name, schema, required } = parameter
  const values = resolve(schema, {}).schema.enum
  const example = exampleOf(parameter)
  const label = required ? name : `${name} (optional)`
  return (
    <Field label={label}>
      {(attributes) =>
        values ? (
          <select name={fieldName(parameter)} required={required} {...attributes}>
            <option value="" />
            {values.map((value) => (
              <option key={String(value)}>{String(value)}</option>
            ))}
          </select>
        ) : (
          <input
            name={fieldName(parameter)}
            required={required}
            placeholder={example === '' ? undefined : String(example)}
            autocomplete="off"
            spellcheck={false}
            {...attributes}
          />
        )
      }
    </Field>
  )
}

function BodyField({ entry }: { entry: OperationEntry }) {
  const { requestBody } = entry.operation
  if (!requestBody) return null
  if (!requestBody.content['application/json']) {
    return (
      <Field label="File">
        {(attributes) => <input type="file" name="file" required {...attributes} />}
      </Field>
    )
  }
  const text = JSON.stringify(exampleBody(entry), null, 2)
  return (
    <Field label={requestBody.required ? 'Body' : 'Body (optional)'}>
      {(attributes) => (
        <textarea
          name="body"
          class="mono"
          rows={Math.min(16, text.split('\n').length + 1)}
          spellcheck={false}
          defaultValue={text}
          {...attributes}
        />
      )}
    </Field>
  )
}

const fieldName = ({ in: where, name }: Pick<Parameter, 'in' | 'name'>) => `${where} ${name}`

/** @throws SyntaxError for a body that is not valid JSON */
function requestOf(entry: OperationEntry, data: FormData): TryRequest {
  const given = (where: Parameter['in']) =>
    Object.fromEntries(
      parametersIn(entry, where)
        .map((one) => [one.name, String(data.get(fieldName(one)) ?? '')])
        .filter(([, value]) => value !== ''),
    )
  const body = data.get('body')
  const file = data.get('file')
  return {
    route: `${entry.method} ${entry.path}`,
    params: given('path'),
    query: given('query'),
    headers: { ...fileHeaders(file), ...given('header') },
    ...(typeof body === 'string' && body.trim() !== '' && { body: JSON.parse(body) }),
    ...(file instanceof File && { file: { bytes: file } }),
  }
}

function fileHeaders(file: FormDataEntryValue | null): Record<string, string> {
  if (!(file instanceof File)) return {}
  return {
    'content-type': file.type || 'application/octet-stream',
    'x-file-name': encodeURIComponent(file.name),
  }
}
