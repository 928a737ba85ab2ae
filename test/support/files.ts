import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Person, TestService } from './service.ts'
import { readAnswer } from './service.ts'

type Sent = { name?: string; type?: string; headers?: Record<string, string> }

/** Uploads bytes as the body of a request. */
export async function upload(
  service: TestService,
  { token }: Pick<Person, 'token'>,
  body: string | Uint8Array | ReadableStream,
  { name, type, headers }: Sent = {},
) {
  const answer = await service.request('/v1/files', {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      ...(name !== undefined && { 'x-file-name': encodeURIComponent(name) }),
      'content-type': type ?? '',
      ...headers,
    },
    body,
  })
  return readAnswer(answer)
}

/** The names in the directory of files, which is created with the first upload. */
export function filesIn({ directory }: { directory: string }): string[] {
  const path = join(directory, 'files')
  return existsSync(path) ? readdirSync(path) : []
}

/** Requests a file by its full URL. */
export function fetchFile(service: TestService, fileUrl: string, init: RequestInit = {}) {
  return service.request(new URL(fileUrl).pathname, init)
}

/** A picture of one pixel. */
export const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)
