// Requests that a command on this machine has sent, with the system's name of the person who ran it.
const operators = new WeakMap<Request, string>()

/** Names the person who runs a command, beside its request. */
export const operatorHeader = 'x-operator'

/** Marks a request as a command's. Only the socket of the data directory, which its owner alone can open, may do so. */
export function asOperator(request: Request): Request {
  operators.set(request, request.headers.get(operatorHeader) || 'unknown')
  return request
}

/** The person who runs the command that sent a request; undefined for one from the network. */
export const operatorOf = (request: Request): string | undefined => operators.get(request)
