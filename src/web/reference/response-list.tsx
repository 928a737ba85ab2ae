import type { Schemas } from './documents.ts'
import { Inline } from './markdown.tsx'
import type { ErrorResponse, Responses, SuccessResponse } from './responses.ts'
import { Author, SchemaTree, Unfold } from './schema-tree.tsx'

/** The responses of an operation: the schema of each success, and every error with its code and reasons. */
export function ResponseList({ responses, schemas }: { responses: Responses; schemas: Schemas }) {
  return (
    <>
      <Author value="service">
        {responses.successes.map((response) => (
          <Success key={response.status} response={response} schemas={schemas} />
        ))}
      </Author>
      <h4>Errors</h4>
      <ul class="errors">
        {responses.errors.map((error) => (
          <ErrorRow key={error.status + error.code} error={error} />
        ))}
      </ul>
    </>
  )
}

function Success({ response, schemas }: { response: SuccessResponse; schemas: Schemas }) {
  const { status, description, schema, headers } = response
  return (
    <>
      <h4>
        Answer <span class="badge good number">{status}</span>
        <span class="soft small">{description}</span>
      </h4>
      {schema ? (
        <SchemaTree schema={schema} schemas={schemas} />
      ) : (
        <p class="small soft">Without JSON.</p>
      )}
      <Unfold label="Headers of the answer">
        {() => (
          <ul class="fields">
            {headers.map(({ name, description }) => (
              <li key={name}>
                <code class="field-name">{name}</code>
                <p class="small soft">
                  <Inline text={description} />
                </p>
              </li>
            ))}
          </ul>
        )}
      </Unfold>
    </>
  )
}

function ErrorRow({ error: { status, code, message, reasons } }: { error: ErrorResponse }) {
  return (
    <li>
      <span class="number small">{status}</span>
      <div>
        <p>
          <code>{code}</code>
        </p>
        <p class="small soft">{message}</p>
        {reasons.length > 0 && (
          <p class="small soft">
            Reason:{' '}
            {reasons.map((reason) => (
              <code key={reason} class="value">
                {reason}
              </code>
            ))}
          </p>
        )}
      </div>
    </li>
  )
}
