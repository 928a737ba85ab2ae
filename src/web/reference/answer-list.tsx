import type { Answers, ErrorAnswer, SuccessAnswer } from './answers.ts'
import type { Schemas } from './documents.ts'
import { Inline } from './markdown.tsx'
import { Author, SchemaTree, Unfold } from './schema-tree.tsx'

/** The responses of an operation: the schema of each success, and every error with its code and reasons. */
export function AnswerList({ answers, schemas }: { answers: Answers; schemas: Schemas }) {
  return (
    <>
      <Author value="service">
        {answers.successes.map((answer) => (
          <Success key={answer.status} answer={answer} schemas={schemas} />
        ))}
      </Author>
      <h4>Errors</h4>
      <ul class="errors">
        {answers.errors.map((error) => (
          <ErrorRow key={error.status + error.code} error={error} />
        ))}
      </ul>
    </>
  )
}

function Success({ answer, schemas }: { answer: SuccessAnswer; schemas: Schemas }) {
  const { status, description, schema, headers } = answer
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

function ErrorRow({ error: { status, code, message, reasons } }: { error: ErrorAnswer }) {
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
