import { type Clock, Secret, unlessAborted } from '../../core/index.ts'
import type { Credential, CredentialSource } from '../credential.ts'
import { CredentialError } from '../credential-error.ts'
import { problemOfKeyPair } from '../exec/key-pair.ts'
import { type CredentialObserver, nobody } from './credential-observer.ts'
import { type PolledParts, PolledValue } from './polled-value.ts'
import { readCredentialFile } from './read-credential-file.ts'
import { provesTheSame } from './same-credential.ts'

/** What file sources need of their host. */
export interface FileSourceHost {
  readonly clock: Clock
  readonly observer?: CredentialObserver
}

/** A minute, less the ten seconds in which a token that is about to be replaced is not trusted. */
const tokenPeriodMs = 50_000
/** Certificates are asked for with every connection, so a change is seen soon. */
const certificatePeriodMs = 10_000

/**
 * The token in a file, read again once a minute: such as that of a service account. A token that is given
 * beside it counts while the file has none.
 */
export function tokenFileSource(
  path: string,
  host: FileSourceHost,
  beside?: Secret,
): CredentialSource {
  const read = async (): Promise<Credential> => {
    const token = (await readCredentialFile(path)).trim()
    if (token === '') {
      throw new CredentialError('FILE', `${path} has no token in it`, {
        hint: 'write the token into it, or remove tokenFile from the user',
      })
    }
    return { token: new Secret(token) }
  }
  const initial = beside && { token: beside }
  return polledSource({ read, periodMs: tokenPeriodMs, ...(initial && { initial }) }, host)
}

/** Where a client certificate and its key are: text or path each. */
export interface CertificateFiles {
  readonly cert: { readonly pem: string } | { readonly path: string }
  readonly key: { readonly pem: Secret } | { readonly path: string }
}

/** A client certificate and its key in files, read again when they are replaced. */
export function certificateFileSource(
  { cert, key }: CertificateFiles,
  host: FileSourceHost,
): CredentialSource {
  const read = async (): Promise<Credential> => {
    const [certPem, keyPem] = await Promise.all([
      'pem' in cert ? cert.pem : readCredentialFile(cert.path),
      'pem' in key ? key.pem : readCredentialFile(key.path).then((text) => new Secret(text)),
    ])
    // One file may have been replaced and the other not yet: then the pair before is kept.
    const problem = problemOfKeyPair(certPem, keyPem.reveal())
    if (problem) throw new CredentialError(problem.code, `the user has ${problem.why}`)
    return { clientCertificate: { certPem, keyPem } }
  }
  return polledSource({ read, periodMs: certificatePeriodMs }, host)
}

function polledSource(
  file: Pick<PolledParts<Credential>, 'read' | 'periodMs' | 'initial'>,
  { clock, observer = nobody }: FileSourceHost,
): CredentialSource {
  const onFailure = (error: unknown): void =>
    observer.notify({ type: 'refresh-failed', error, usableForMs: Number.POSITIVE_INFINITY })
  const value = new PolledValue({ ...file, same: provesTheSame, clock, onFailure })
  return {
    current: (signal) => unlessAborted(value.current(), signal),
    renew: async (used, _refusal, signal) => {
      const next = await unlessAborted(value.fresh(), signal)
      return provesTheSame(next, used) ? undefined : next
    },
    onRotate: (listener) => value.onChange(listener),
    dispose: () => value.dispose(),
  }
}
