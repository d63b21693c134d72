import * as tls from 'node:tls'
import type { Clock } from '../../core/index.ts'
import { type Cluster, clusterLocation } from '../../kubeconfig/index.ts'
import { readCredentialFile } from '../credential-file.ts'
import { CredentialError } from '../errors.ts'
import { staticTrust, type TrustSource } from '../transport/types.ts'
import { PolledValue } from './file-source.ts'

const periodMs = 10_000

/** The authorities of a cluster, from its file if it has one; nothing if it names none. */
export function trustSourceFor(cluster: Cluster, clock: Clock): TrustSource | undefined {
  const trust = namedTrust(cluster, clock)
  return trust && clusterLocation(cluster).systemRoots ? besideSystemRoots(trust) : trust
}

function namedTrust(cluster: Cluster, clock: Clock): TrustSource | undefined {
  const { certificateAuthorityData: pem, certificateAuthority: path } = cluster
  if (pem !== undefined) return staticTrust(pem)
  return path === undefined ? undefined : fileTrust(path, clock)
}

/** The authorities of a cluster and those that are believed where none are named. */
function besideSystemRoots(trust: TrustSource): TrustSource {
  return { ...trust, current: async () => withSystemRoots(await trust.current()) }
}

/** PEM text with the roots of the system after it: those of Node.js, and where it can tell, of the machine. */
export function withSystemRoots(pem: string): string {
  const ask: unknown = Reflect.get(tls, 'getCACertificates')
  const ofMachine: unknown = typeof ask === 'function' ? Reflect.apply(ask, tls, ['system']) : []
  const machine = Array.isArray(ofMachine) ? ofMachine.filter((one) => typeof one === 'string') : []
  return [pem.trimEnd(), ...new Set([...tls.rootCertificates, ...machine])].join('\n')
}

/** Authorities in a file, which is read again when it is replaced; one that holds none is not believed. */
export function fileTrust(path: string, clock: Clock): TrustSource {
  const read = async (): Promise<string> => {
    const pem = await readCredentialFile(path)
    if (pem.includes('-----BEGIN CERTIFICATE-----')) return pem
    throw new CredentialError('FILE', `${path} holds no certificate`, {
      hint: 'certificate-authority must name a PEM file',
    })
  }
  const same = (a: string, b: string): boolean => a === b
  // What cannot be read now is no reason to break connections: the authorities before are still believed.
  const value = new PolledValue({ read, same, periodMs, clock, onFailure: () => {} })
  return {
    current: () => value.current(),
    onChange: (listener) => value.onChange(() => listener()),
    dispose: () => value.dispose(),
  }
}
