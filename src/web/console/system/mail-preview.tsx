import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { Answer, Body } from '../../../../client/src/contract.ts'
import { ActionButton } from '../../kit/button.tsx'
import { errorText } from '../../kit/errors.ts'
import { Loading } from '../../kit/states.tsx'
import { texts } from '../../kit/texts.tsx'
import { request, user } from '../session.ts'

const words = texts.console.system.mails
const route = 'POST /v1/admin/settings/texts/preview'
const pauseMilliseconds = 300

export type Mail = Body<typeof route>

/** A mail with invented values, made anew while somebody types. */
export function MailPreview({ mail }: { mail: Mail }) {
  const [shown, setShown] = useState<Answer<typeof route>>()
  const [problem, setProblem] = useState('')
  const key = JSON.stringify(mail)
  useEffect(() => {
    let isOver = false
    async function show() {
      try {
        const answer = await request(route, { body: mail })
        if (isOver) return
        setShown(answer)
        setProblem('')
      } catch (error) {
        if (!isOver) setProblem(errorText(error).text)
      }
    }
    const timer = setTimeout(show, shown ? pauseMilliseconds : 0)
    return () => {
      isOver = true
      clearTimeout(timer)
    }
  }, [key])
  return (
    <div class="stack tight mail-preview">
      {problem && <p class="error">{problem}</p>}
      {shown ? (
        <>
          <h2 dir="auto">{shown.subject}</h2>
          <MailBody html={shown.html} />
          <details>
            <summary>{words.plain}</summary>
            <pre class="prose">{shown.text}</pre>
          </details>
        </>
      ) : (
        !problem && <Loading rows={3} />
      )}
      <div class="row">
        <ActionButton
          texts={words.send}
          values={{ email: user.value?.email ?? '' }}
          work={() => request(route, { body: { ...mail, send: true } })}
        />
      </div>
    </div>
  )
}

/** Mails bring their styles along, in attributes, which the policy of the page forbids and a script may set. Texts of
 *  people are escaped, so that no other ` style="` stands in a mail. */
function MailBody({ html }: { html: string }) {
  const host = useRef<HTMLDivElement>(null)
  useLayoutEffect(() => {
    const parsed = new DOMParser().parseFromString(
      html.replaceAll(' style="', ' data-style="'),
      'text/html',
    )
    const body = document.createElement('div')
    body.dataset['style'] = parsed.body.dataset['style'] ?? ''
    body.append(...parsed.body.childNodes)
    for (const element of [body, ...body.querySelectorAll<HTMLElement>('[data-style]')]) {
      element.style.cssText = element.dataset['style'] ?? ''
    }
    const root = host.current?.shadowRoot ?? host.current?.attachShadow({ mode: 'open' })
    root?.replaceChildren(body)
  }, [html])
  return <div ref={host} class="mail-body" inert />
}
