// Files that are imported as text, so that the executable carries them.

declare module '*.md' {
  const text: string
  export default text
}

declare module '*/service-worker.js' {
  const text: string
  export default text
}
