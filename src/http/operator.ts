// Requests of commands on this machine, with the system name of the person who runs the command.
const operators = new WeakMap<Request, string>()

/** The system name of the person who runs the command. */
export const operatorHeader = 'x-operator'

/** Marks a request as sent by a command. Called only for the socket in the data directory, which only the directory's
 *  owner can open. */
export function asOperator(request: Request): Request {
  operators.set(request, request.headers.get(operatorHeader) || 'unknown')
  return request
}

/** The person who runs the command that sent a request; undefined for requests from the network. */
export const operatorOf = (request: Request): string | undefined => operators.get(request)
