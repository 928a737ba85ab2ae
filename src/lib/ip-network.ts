import ipaddr from 'ipaddr.js'

/** What shares one limit: an IPv4 address, or the /64 that an IPv6 customer has at least. */
export function ipGroup(ip: string): string {
  return ipv6Network(ip, 64) ?? ip
}

/** The network that an IPv6 address is in; undefined for other addresses. */
export function ipv6Network(ip: string, bits: 48 | 64): string | undefined {
  if (!ipaddr.IPv6.isValid(ip)) return undefined
  const parts = ipaddr.IPv6.parse(ip).parts.slice(0, bits / 16)
  return `${parts.map((part) => part.toString(16)).join(':')}::/${bits}`
}
