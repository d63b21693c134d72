import type { KeyObject, X509Certificate } from 'node:crypto'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { CommandFailed } from '../core/index.ts'
import { readCertificateFile, readKeyFile } from './pki-files.ts'

/** What lies beside `ca.crt` and `ca.key` while the CA is being replaced. */
export const caRotationFiles = {
  /** The CA that will sign. */
  nextCert: 'ca-next.crt',
  nextKey: 'ca-next.key',
  /** The next CA once more, signed by the one before. */
  cross: 'ca-cross.crt',
  /** The CA that has signed before. */
  oldCert: 'ca-old.crt',
} as const

/** How far a CA's replacement has come. */
export type CaRotationStage = 'none' | 'begun' | 'switched'

/** The cluster's CAs and how far the replacement of one by another has come. */
export interface CaRotation {
  readonly stage: CaRotationStage
  /** Signs now. */
  readonly signing: X509Certificate
  /** Will sign; only once it is `begun`. */
  readonly next?: X509Certificate
  /** Has signed before; only once it is `switched`. */
  readonly old?: X509Certificate
  /** Since when the new one signs; only once it is `switched`. */
  readonly switchedAt?: number
  /** Every one that is trusted. */
  readonly trusted: readonly X509Certificate[]
}

/** The files of a CA in rotation. */
export interface CaFiles {
  readonly path: (name: keyof typeof caRotationFiles | 'cert' | 'key') => string
  readonly all: readonly X509Certificate[]
  readonly key: KeyObject
  readonly signing: X509Certificate
  readonly next: X509Certificate | undefined
  readonly old: X509Certificate | undefined
  readonly oldNotedAt: number | undefined
}

/** Reads all files of the CA in a PKI's directory; there must be a CA whose key is here. */
export async function readCaFiles(directory: string): Promise<CaFiles> {
  const names = { ...caRotationFiles, cert: 'ca.crt', key: 'ca.key' }
  const path: CaFiles['path'] = (name) => join(directory, names[name])
  const [found, key, next, old, oldNotedAt] = await Promise.all([
    readCertificateFile(path('cert')),
    readKeyFile(path('key')),
    readCertificateFile(path('nextCert')),
    readCertificateFile(path('oldCert')),
    stat(path('oldCert')).then(
      ({ mtimeMs }) => mtimeMs,
      () => undefined,
    ),
  ])
  if (!found)
    throw new CommandFailed('NO_CLUSTER', `there is no CA in ${directory}`, {
      hint: 'start the cluster once, or name its directory with --data-dir',
    })
  const signing = key && found.all.find((each) => each.checkPrivateKey(key))
  if (!key || !signing)
    throw new CommandFailed(
      'CA_KEY_ELSEWHERE',
      `the key of the CA in ${path('cert')} is not in ${path('key')}`,
      {
        hint: 'a CA whose key is kept elsewhere is replaced there: put the new bundle into ca.crt',
      },
    )
  return { path, all: found.all, key, signing, next: next?.first, old: old?.first, oldNotedAt }
}

/** Tells from the files alone how far it has come, also when a step was cut off. */
export function rotationOf({ all, signing, next, old, oldNotedAt }: CaFiles): CaRotation {
  const isTrusted = (one: X509Certificate | undefined): one is X509Certificate =>
    one !== undefined && all.some((each) => isSameCertificate(each, one))
  if (isTrusted(old) && !isSameCertificate(old, signing))
    return {
      stage: 'switched',
      signing,
      old,
      trusted: all,
      ...(oldNotedAt !== undefined && { switchedAt: oldNotedAt }),
    }
  if (isTrusted(next) && !isSameCertificate(next, signing))
    return { stage: 'begun', signing, next, trusted: all }
  return { stage: 'none', signing, trusted: all }
}

/** Whether two certificates are the same. */
export const isSameCertificate = (a: X509Certificate, b: X509Certificate): boolean =>
  a.fingerprint256 === b.fingerprint256
