import type { Core, Module } from '../../core.ts'
import type { FileStorage } from '../../files/storage.ts'
import { createFileUrls, exportedFileView } from './model.ts'
import { fileRoutes } from './routes.ts'
import { createFileService } from './service.ts'
import { createFileStore } from './store.ts'
import { createFileUses } from './uses.ts'

type Neighbours = { storage: FileStorage; isDiskShort: () => boolean }

/** What people upload, and what uses it. */
export function createFiles(core: Core, { storage, isDiskShort }: Neighbours) {
  const { publicUrl, files: limits } = core.config
  const store = createFileStore(core.orm)
  const urls = createFileUrls(publicUrl)
  const files = createFileService(core, { store, storage, isDiskShort })
  const uses = createFileUses(core, { store, urls, remove: files.remove })

  return {
    routes: fileRoutes({ files, urls, maxBytes: limits.maxBytes }),
    uses,
    jobs: {
      async file_removal({ key }) {
        await storage.delete(key)
        return undefined
      },
    },
    exportOf: (userId: string) => ({
      files: store.eachOf(userId).map((row) => exportedFileView(row, urls)),
    }),
    forget: uses.forget,
    erase: files.erase,
  } satisfies Module & Record<string, unknown>
}
