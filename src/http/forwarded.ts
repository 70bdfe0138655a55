/**
 * Finds the client of a request that may have come through proxies. Each proxy appends to
 * `X-Forwarded-For` the address it was called from, so the field is true from its right end on, as
 * far as the proxies are ours. Anything before that may be made up. It is read from the right, and
 * never one entry further than what a trusted proxy wrote.
 */
import { type Address, addressIn, contains, type Network } from './address.ts'

/** How many proxies stand before us, or the networks that they are in. */
export type Trust = number | readonly Network[]

/** `peer` is the other end of the socket, `forwarded` the field as it came. */
export function clientAddress(peer: Address | undefined, forwarded: string | undefined, trust: Trust): Address | undefined {
  return typeof trust === 'number' ? afterHops(peer, forwarded ?? '', trust) : beyondNetworks(peer, forwarded ?? '', trust)
}

/**
 * The entry that the outermost of our proxies wrote. If there are fewer entries than proxies, the
 * request did not come through all of them and any entry may be made up: then it is the socket's.
 * An entry that is no address stays where it stands: it hides its own sender, and lets nothing
 * before it count.
 */
function afterHops(peer: Address | undefined, forwarded: string, hops: number): Address | undefined {
  let sender = peer
  let end = forwarded.length
  for (let hop = 0; hop < hops; hop++) {
    if (end <= 0) return peer
    const comma = forwarded.lastIndexOf(',', end - 1)
    sender = addressIn(forwarded.slice(comma + 1, end)) ?? sender
    end = comma
  }
  return sender
}

/**
 * The first address from the right that is in none of our networks; the socket's, if it is not in
 * them itself.
 */
function beyondNetworks(peer: Address | undefined, forwarded: string, networks: readonly Network[]): Address | undefined {
  let sender = peer
  let end = forwarded.length
  while (sender !== undefined && end > 0 && isIn(networks, sender)) {
    const comma = forwarded.lastIndexOf(',', end - 1)
    const next = addressIn(forwarded.slice(comma + 1, end))
    if (next === undefined) break
    sender = next
    end = comma
  }
  return sender
}

function isIn(networks: readonly Network[], address: Address): boolean {
  return networks.some((network) => contains(network, address))
}
