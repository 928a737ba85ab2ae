import S3rver from '@20minutes/s3rver'
import { temporaryDirectory } from './directory.ts'

/** A bucket of an S3-compatible server that checks signatures. */
export async function startBucket() {
  const directory = temporaryDirectory()
  const server = new S3rver({
    port: 0,
    address: '127.0.0.1',
    silent: true,
    directory: directory.path,
    configureBuckets: [{ name: 'media', configs: [] }],
  })
  const { port }: { port: number } = await server.run()
  const urlOf = (secret: string) =>
    `s3://S3RVER:${secret}@127.0.0.1:${port}/media/people?region=eu-west-1&tls=off`
  return {
    url: urlOf('S3RVER'),
    urlOf,
    port,
    keys(): string[] {
      const files = new Bun.Glob('**/*._S3rver_object').scanSync(directory.path)
      return [...files].map((path) => path.replace('._S3rver_object', '')).sort()
    },
    async [Symbol.asyncDispose]() {
      await server.close()
      directory[Symbol.dispose]()
    },
  }
}
