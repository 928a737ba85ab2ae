import ipaddr from 'ipaddr.js'

type Address = ipaddr.IPv4 | ipaddr.IPv6
export type Network = [Address, number]

const ipv4Pattern = /^(\d+\.){3}\d+$/

/** The address a request came from: the peer's, or, when the peer is a trusted proxy, the first untrusted one in
 *  `X-Forwarded-For` from right to left. */
export function clientIp(
  peer: string | undefined,
  forwardedFor: string | null,
  trusted: readonly Network[],
): string {
  if (forwardedFor === null && peer !== undefined && ipv4Pattern.test(peer)) return peer
  let address = parse(peer)
  if (!address) return 'unknown'
  if (forwardedFor === null || !isTrusted(address, trusted)) return address.toString()
  for (const hop of forwardedFor.split(',').reverse()) {
    const next = parse(hop.trim())
    if (!next) break
    address = next
    if (!isTrusted(address, trusted)) break
  }
  return address.toString()
}

export function isLoopback(host: string | undefined): boolean {
  return host?.toLowerCase() === 'localhost' || parse(host)?.range() === 'loopback'
}

/** A CIDR block or a single address.
 *  @throws Error when the text is neither */
export function parseNetwork(text: string): Network {
  if (text.includes('/')) return ipaddr.parseCIDR(text)
  // The library also accepts `10.1` as an address.
  if (!/^(\d+\.){3}\d+$|:/.test(text)) throw new Error('not an address')
  const address = ipaddr.process(text)
  return [address, address.kind() === 'ipv4' ? 32 : 128]
}

function parse(text: string | undefined): Address | undefined {
  if (text === undefined) return undefined
  const bare = text.replace(/^\[(.*)\](:\d+)?$/, '$1').replace(/^(\d+\.\d+\.\d+\.\d+):\d+$/, '$1')
  return ipaddr.isValid(bare) ? ipaddr.process(bare) : undefined
}

function isTrusted(address: Address, trusted: readonly Network[]) {
  return trusted.some(
    ([network, bits]) => network.kind() === address.kind() && address.match(network, bits),
  )
}
