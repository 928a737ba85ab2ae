/** What a command sees of the outside: injected, so that tests can run commands in-process. */
export type Terminal = {
  environment: Record<string, string | undefined>
  /** True when a person reads the output. */
  isInteractive: boolean
  out(line: string): void
  err(line: string): void
  readStdin(): Promise<string>
}
