/** Why a command cannot go on, in one line for the person at the terminal. Exit code 1, or 2 for wrong usage. */
export class StartError extends Error {
  readonly exitCode: 1 | 2

  constructor(message: string, options: { exitCode?: 1 | 2; cause?: unknown } = {}) {
    super(message, { cause: options.cause })
    this.exitCode = options.exitCode ?? 1
  }
}
