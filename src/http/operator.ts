// Requests sent by a command on this machine, with the system name of the person who ran it.
const operators = new WeakMap<Request, string>()

/** The system name of the person who runs the command. */
export const operatorHeader = 'x-operator'

/** Marks a request as a command's. Only the socket in the data directory may do so, since only the directory's owner
 *  can open it. */
export function asOperator(request: Request): Request {
  operators.set(request, request.headers.get(operatorHeader) || 'unknown')
  return request
}

/** The person who runs the command that sent a request; undefined for requests from the network. */
export const operatorOf = (request: Request): string | undefined => operators.get(request)
