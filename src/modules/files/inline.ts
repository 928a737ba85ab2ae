/** How much of a file tells what it is. */
export const sniffedBytes = 4_100

const sameType: Record<string, string> = {
  'image/jpg': 'image/jpeg',
  'image/apng': 'image/png',
  'image/vnd.microsoft.icon': 'image/x-icon',
}

/** Whether a browser may show a file by itself: a picture, a sound, a film or a PDF that begins as its type says. What it
 *  could run, such as SVG, is none of these by its first bytes. */
export async function isShownInline(type: string, head: Uint8Array): Promise<boolean> {
  if (!/^(image|audio|video)\/|^application\/pdf$/.test(type)) return false
  // Loaded when somebody uploads: a start does not need it.
  const { fileTypeFromBuffer } = await import('file-type')
  const found = (await fileTypeFromBuffer(head))?.mime ?? ''
  if (!isMedia(type)) return plain(found) === plain(type)
  return isMedia(found) || found === 'application/ogg'
}

// One container holds either: what is heard and what is seen is told apart by the player.
const isMedia = (type: string) => /^(audio|video)\//.test(type)
const plain = (type: string) => sameType[type] ?? type.split(';', 1)[0]
