import ipaddr from 'ipaddr.js'

/** The addresses that share one rate limit: a single IPv4 address, or an IPv6 /64, the smallest network of a customer. */
export function ipGroup(ip: string): string {
  return ipv6Network(ip, 64) ?? ip
}

/** The network of an IPv6 address; undefined for other addresses. */
export function ipv6Network(ip: string, bits: 48 | 64): string | undefined {
  if (!ipaddr.IPv6.isValid(ip)) return undefined
  const parts = ipaddr.IPv6.parse(ip).parts.slice(0, bits / 16)
  return `${parts.map((part) => part.toString(16)).join(':')}::/${bits}`
}

const globalUnicast = ipaddr.IPv6.parseCIDR('2000::/3')
const documentation = ipaddr.IPv6.parseCIDR('3fff::/20')

/** Whether an address is on the public internet. Addresses that embed another one are not: IPv4 in IPv6, 6to4, NAT64,
 *  Teredo. */
export function isPublicAddress(ip: string): boolean {
  if (!ipaddr.isValid(ip)) return false
  const address = ipaddr.parse(ip)
  if (address.range() !== 'unicast') return false
  if (address instanceof ipaddr.IPv4) return true
  return address.match(globalUnicast) && !address.match(documentation)
}
