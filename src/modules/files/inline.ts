/** Enough of a file's first bytes to detect its type. */
export const sniffedBytes = 4_100

const sameType: Record<string, string> = {
  'image/jpg': 'image/jpeg',
  'image/apng': 'image/png',
  'image/vnd.microsoft.icon': 'image/x-icon',
}

/** Whether a browser may show a file by itself: a picture, sound, video or PDF whose first bytes fit its type. Files
 *  that a browser could run, such as SVG, never match by their first bytes. */
export async function isShownInline(type: string, head: Uint8Array): Promise<boolean> {
  if (!/^(image|audio|video)\/|^application\/pdf$/.test(type)) return false
  // Loaded at the first upload, to keep the start short.
  const { fileTypeFromBuffer } = await import('file-type')
  const found = (await fileTypeFromBuffer(head))?.mime ?? ''
  if (!isMedia(type)) return plain(found) === plain(type)
  return isMedia(found) || found === 'application/ogg'
}

// One container format may hold sound or video, so either type fits.
const isMedia = (type: string) => /^(audio|video)\//.test(type)
const plain = (type: string) => sameType[type] ?? type.split(';', 1)[0]
