import { CommandFailed, machineIdentity } from '../../core/index.ts'
import { type JoinIdentity, organizationsOf } from '../../discovery/join/index.ts'
import { readCertificateFields } from '../../pki/trust/index.ts'
import type { PresentIdentity } from './join-files.ts'

/** A certificate that is over proves nothing, so it cannot renew itself. */
export const expired = ({ certificate }: PresentIdentity, file: string): CommandFailed =>
  new CommandFailed(
    'CERTIFICATE_EXPIRED',
    `the certificate in ${file} ended at ${certificate.validTo}, so it cannot renew itself`,
    { hint: 'join anew: give ADDRESS and --token-file' },
  )

/** Whoever has no right to ask for certificates cannot renew their own. */
export const mayNotAsk = (username: string, file: string): CommandFailed =>
  new CommandFailed(
    'REQUEST_FORBIDDEN',
    `${username} may not ask this cluster for certificates, so ${file} cannot renew itself`,
    { hint: 'give ADDRESS and --token-file, and have an administrator approve the request' },
  )

/** Refuses a renewal that would take groups away without a word. */
export function requireSameGroups(
  { certificate }: PresentIdentity,
  as: JoinIdentity,
  file: string,
): void {
  const wanted = organizationsOf(as)
  const { organizations } = readCertificateFields(certificate.raw).subject
  const lost = organizations.filter((name) => !wanted.includes(name))
  if (lost.length === 0) return
  throw new CommandFailed(
    'GROUPS_LOST',
    `${file} is in the groups ${organizations.join(', ')}, and renewed it would lose ${lost.join(', ')}`,
    { hint: hintFor(lost) },
  )
}

const hintFor = (lost: readonly string[]): string =>
  lost.includes(machineIdentity.loopbackGroup)
    ? "a machine on the server's own loopback is made anew there: `sallyport user create NAME --machine`"
    : `name them: ${lost.map((name) => `--group ${name}`).join(' ')}; or --force with a token joins anew`
