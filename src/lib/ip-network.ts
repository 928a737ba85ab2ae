import ipaddr from 'ipaddr.js'

type Address = ipaddr.IPv4 | ipaddr.IPv6
export type Network = [Address, number]

/** The addresses that share one rate limit: a single IPv4 address, or an IPv6 /64, the smallest network of a customer. */
export function ipGroup(ip: string): string {
  return ipv6Network(ip, 64) ?? ip
}

export function ipv6Network(ip: string, bits: 48 | 64): string | undefined {
  if (!ipaddr.IPv6.isValid(ip)) return undefined
  const parts = ipaddr.IPv6.parse(ip).parts.slice(0, bits / 16)
  return `${parts.map((part) => part.toString(16)).join(':')}::/${bits}`
}

/** The prefix of IPv4 addresses in IPv6 (RFC 4291, 2.5.5.2). */
const mappedBits = 96

/** The network in CIDR notation without the bits of a host; undefined when the text is neither network nor address, or a
 *  larger network than anybody has: wider than /8, or /16 of IPv6. */
export function networkText(text: string): string | undefined {
  const cidr = text.includes('/') ? text : `${text}/${text.includes(':') ? 128 : 32}`
  if (ipaddr.IPv4.isValidCIDRFourPartDecimal(cidr)) {
    const [, bits] = ipaddr.IPv4.parseCIDR(cidr)
    return bits < 8 ? undefined : `${ipaddr.IPv4.networkAddressFromCIDR(cidr)}/${bits}`
  }
  if (!ipaddr.IPv6.isValidCIDR(cidr)) return undefined
  const [base, bits] = ipaddr.IPv6.parseCIDR(cidr)
  if (base.isIPv4MappedAddress() && bits >= mappedBits) {
    return networkText(`${base.toIPv4Address()}/${bits - mappedBits}`)
  }
  return bits < 16 ? undefined : `${ipaddr.IPv6.networkAddressFromCIDR(cidr)}/${bits}`
}

/** Parses an address once, to look for it in many networks. */
export function locate(ip: string): (network: Network) => boolean {
  const address = ipaddr.isValid(ip) ? ipaddr.process(ip) : undefined
  return (network) => address !== undefined && isWithin(address, network)
}

export const isWithinNetwork = (ip: string, network: string): boolean =>
  locate(ip)(ipaddr.parseCIDR(network))

const isWithin = (address: Address, [base, bits]: Network) =>
  address.kind() === base.kind() && address.match(base, bits)

const globalUnicast = ipaddr.IPv6.parseCIDR('2000::/3')
const documentation = ipaddr.IPv6.parseCIDR('3fff::/20')

/** Addresses that embed another one are not public: IPv4 in IPv6, 6to4, NAT64, Teredo. */
export function isPublicAddress(ip: string): boolean {
  if (!ipaddr.isValid(ip)) return false
  const address = ipaddr.parse(ip)
  if (address.range() !== 'unicast') return false
  if (address instanceof ipaddr.IPv4) return true
  return address.match(globalUnicast) && !address.match(documentation)
}

const ipv4Pattern = /^(\d+\.){3}\d+$/

/** The address a request came from: the peer's, or, when the peer is a trusted proxy, the first untrusted one in
 *  `X-Forwarded-For` from right to left. */
export function clientIp(
  peer: string | undefined,
  forwardedFor: string | null,
  trusted: readonly Network[],
): string {
  if (forwardedFor === null && peer !== undefined && ipv4Pattern.test(peer)) return peer
  const isTrusted = (hop: Address) => trusted.some((network) => isWithin(hop, network))
  let address = parse(peer)
  if (!address) return 'unknown'
  if (forwardedFor === null || !isTrusted(address)) return address.toString()
  for (const hop of forwardedFor.split(',').reverse()) {
    const next = parse(hop.trim())
    if (!next) break
    address = next
    if (!isTrusted(address)) break
  }
  return address.toString()
}

export function isLoopback(host: string | undefined): boolean {
  return host?.toLowerCase() === 'localhost' || parse(host)?.range() === 'loopback'
}

/** @throws Error when the text is neither a CIDR block nor an address */
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
