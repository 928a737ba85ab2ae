import type { Core, Module } from '../../core.ts'
import { inPieces } from '../../db/pieces.ts'
import { minute } from '../../lib/clock.ts'
import { PermanentFailure } from '../../lib/errors.ts'
import { unlessAborted } from '../../outside/exchange.ts'
import { createDeskPass } from './desk-pass.ts'
import { createFileUrls, ExportedFile, exportedFileView } from './model.ts'
import { fileRoutes } from './routes.ts'
import { createFileService, type FileParts } from './service.ts'
import { createFileStore, fileRetention } from './store.ts'
import { createFileUses } from './uses.ts'

declare module '../../db/audit-trail.ts' {
  interface AuditActions {
    file_removed: 'file'
  }
}

declare module '../../jobs/outbox.ts' {
  interface OutboxJobs {
    file_removal: { key: string; isImage?: boolean }
    file_release: { key: string; isInMessage: boolean }
  }
}

const loggedFailures = 8
const retryMilliseconds = 10 * minute

export function createFiles(core: Core, neighbours: Omit<FileParts, 'store' | 'urls'>) {
  const { publicUrl, files: limits } = core.config
  const store = createFileStore(core.orm)
  const urls = createFileUrls(publicUrl)
  const files = createFileService(core, { store, urls, ...neighbours })
  const uses = createFileUses(core, { store, urls, files })
  const pass = createDeskPass(core.clock)

  return {
    retention: fileRetention(core.clock.now(), (key, isImage) =>
      core.outbox.add('file_removal', { key, isImage }),
    ),
    routes: (app) => fileRoutes(app, { files, urls, pass, maxBytes: limits.maxBytes }),
    uses,
    deskUrl(url: string): string {
      const file = store.findKept(urls.idIn(url) ?? '')
      return file && file.removedAt !== null ? pass.add(url, file.id) : url
    },
    jobs: {
      async file_release(release, { isStopping }) {
        const next = (limit: number) => files.releaseSome(release, limit)
        const isLeft = await inPieces(core.write, next, { isStopping })
        return isLeft && isStopping() ? { againAfterMilliseconds: 0 } : undefined
      },
      async file_removal({ key, isImage }, { attempts, signal }) {
        try {
          await unlessAborted(signal, files.deleteBytes(key, isImage))
          return undefined
        } catch (error) {
          if (signal.aborted) return { againAfterMilliseconds: 0 }
          // The storage may be unavailable for days, so a removal is retried without limit.
          if (error instanceof PermanentFailure || attempts < loggedFailures) throw error
          return { againAfterMilliseconds: retryMilliseconds }
        }
      },
    },
    exports: {
      files: {
        description: 'The files that the person has uploaded.',
        item: ExportedFile,
        each: (userId) => store.eachOf(userId).map((row) => exportedFileView(row, urls)),
      },
    },
    forget: uses.forget,
    erase: files.erase,
    purge: { files: { count: (userId: string) => [store.countOf(userId)], some: files.purge } },
  } satisfies Module & Record<string, unknown>
}
