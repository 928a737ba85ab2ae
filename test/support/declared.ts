// biome-ignore lint/suspicious/noExplicitAny: a JSON document that is explored freely
type Json = any

/** The responses that the API description declares, to check real ones.
 *  @returns a function that throws for an undeclared status or reason */
export function createDeclared({ paths, components }: Json) {
  const operations = Object.entries<Json>(paths)
    .map(([path, methods]) => ({ path, pattern: patternOf(path), methods }))
    // A fixed path takes precedence over one with a parameter.
    .sort((a, b) => a.path.split('{').length - b.path.split('{').length)

  return (method: string, address: string, { status, headers }: Response) => {
    const path = address.split('?', 1)[0] ?? ''
    const responses = operations.find((it) => it.pattern.test(path))?.methods[method.toLowerCase()]
      ?.responses
    if (!responses) return
    const about = `${method} ${path}: the description has no`
    const response = resolved(responses[status])
    if (!response) throw new Error(`${about} ${status}`)
    const reason = headers.get('x-error-reason')
    const reasons: string[] = response.headers['X-Error-Reason']?.schema.enum ?? []
    if (reason !== null && !reasons.includes(reason)) {
      throw new Error(`${about} ${status} ${reason}`)
    }
  }

  function resolved(response: Json) {
    return response?.$ref ? components.responses[response.$ref.split('/').at(-1)] : response
  }
}

function patternOf(path: string) {
  const escaped = path.replaceAll('.', '\\.')
  return new RegExp(`^${escaped.replace(/\{\w+\}/g, '[^/]+')}$`)
}
