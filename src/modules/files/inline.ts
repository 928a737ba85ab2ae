/** The number of first bytes that reveal the type of a file. */
export const sniffedBytes = 4_100

const sameType: Record<string, string> = {
  'image/jpg': 'image/jpeg',
  'image/apng': 'image/png',
  'image/vnd.microsoft.icon': 'image/x-icon',
}

/** Whether a browser may display a file instead of downloading it: an image, audio, video or PDF whose first bytes match
 *  its type. Files that a browser could execute, such as SVG, never match. */
export async function isShownInline(type: string, head: Uint8Array): Promise<boolean> {
  if (!/^(image|audio|video)\/|^application\/pdf$/.test(type)) return false
  // Loaded at the first upload, to keep the start short.
  const { fileTypeFromBuffer } = await import('file-type')
  const found = (await fileTypeFromBuffer(head))?.mime ?? ''
  if (!isMedia(type)) return plain(found) === plain(type)
  return isMedia(found) || found === 'application/ogg'
}

// A container format may contain audio or video, so either type is accepted.
const isMedia = (type: string) => /^(audio|video)\//.test(type)
const plain = (type: string) => sameType[type] ?? type.split(';', 1)[0]
