import { dlopen, ptr } from 'bun:ffi'

/** Messages to systemd (sd_notify). The protocol needs a Unix datagram socket, which the runtime lacks, so the C library
 *  sends them. Elsewhere than under systemd nothing happens. https://www.freedesktop.org/software/systemd/man/sd_notify.html */

const unixFamily = 1
const datagramType = 2
const closeOnExec = 0o2000000

export type Notify = (message: string) => void

export function openNotify(address: string | undefined): Notify | undefined {
  if (!address || process.platform !== 'linux') return undefined
  const { symbols } = dlopen('libc.so.6', {
    socket: { args: ['i32', 'i32', 'i32'], returns: 'i32' },
    sendto: { args: ['i32', 'ptr', 'u64', 'i32', 'ptr', 'u32'], returns: 'i64' },
  })
  const socket = symbols.socket(unixFamily, datagramType | closeOnExec, 0)
  // sockaddr_un: the family, then the path; `@` stands for the zero byte of an abstract name.
  const path = Buffer.from(address.replace(/^@/, '\0'))
  const target = Buffer.concat([Buffer.from(new Uint16Array([unixFamily]).buffer), path])
  return (message) => {
    const bytes = Buffer.from(message)
    symbols.sendto(socket, ptr(bytes), bytes.length, 0, ptr(target), target.length)
  }
}

/** Tells systemd that the service is ready, and from then on that its event loop runs (WatchdogSec). */
export function reportReady(notify: Notify | undefined, watchdogMicroseconds: string | undefined) {
  notify?.('READY=1')
  const period = Number(watchdogMicroseconds) / 2_000
  if (notify && period > 0) setInterval(() => notify('WATCHDOG=1'), period).unref()
}
