import type { X509Certificate } from 'node:crypto'
import { spkiPin } from '../../pki/trust/index.ts'
import { badArguments, DiscoveryFailed } from './discovery-failed.ts'

const form = /^sha256:([\da-f]{64})$/i

/** Reads the pin of a CA's public key as kubeadm writes it. */
export function parsePin(text: string): string {
  const [, hex] = form.exec(text.trim()) ?? []
  if (hex !== undefined) return `sha256:${hex.toLowerCase()}`
  throw badArguments(
    `${JSON.stringify(text)} is no pin of a CA: it must be sha256: and 64 hexadecimal digits`,
    'copy it from the join line that `sallyport token create` or `kubeadm token create --print-join-command` prints',
  )
}

/** The pin of every certificate, each once. */
export const pinsOf = (certificates: readonly X509Certificate[]): string[] => [
  ...new Set(certificates.map(spkiPin)),
]

/**
 * Every root must be pinned. If one were enough, whoever holds the token could put a root of
 * their own beside the right one, and everything would be trusted that theirs has signed.
 */
export function checkPins(
  seen: readonly string[],
  pins: readonly string[],
  systemRoots = false,
): void {
  if (pins.length === 0) return
  const strangers = seen.filter((pin) => !pins.includes(pin))
  if (seen.length > 0 && strangers.length === 0 && !systemRoots) return
  throw new DiscoveryFailed('pin-mismatch', sentence(seen, strangers), {
    hint: 'do not go on before you know why: ask the administrator for the pins of all roots of this cluster, or for a new join line',
    pinsSeen: seen,
  })
}

function sentence(seen: readonly string[], strangers: readonly string[]): string {
  if (seen.length === 0)
    return 'pins were given, but the cluster announces no CA of its own that they could fit'
  if (strangers.length === 0)
    return `the cluster wants the roots of this system to be trusted as well, which no pin covers (its own: ${seen.join(', ')})`
  if (strangers.length === seen.length)
    return `the cluster's CA has none of the pins that were given; its own: ${seen.join(', ')}`
  return `the cluster announces a root that was not pinned: ${strangers.join(', ')} (all that it announces: ${seen.join(', ')})`
}
