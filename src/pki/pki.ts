import type { KeyObject } from 'node:crypto'
import { join } from 'node:path'
import type { Clock, Logger } from '../core/index.ts'
import { type AuthorityFiles, FollowedAuthority, openAuthority } from './ca-files.ts'
import { caRotationFiles } from './ca-rotation-files.ts'
import {
  type CertificateAuthority,
  type CertificateSubject,
  type IssuedCertificate,
  issueKeyAndCertificate,
} from './issue-certificate.ts'
import { openServiceAccountKey, type ServiceAccountKey } from './keys.ts'
import { makePrivateDirectory } from './pki-files.ts'
import { ensureServing } from './serving-files.ts'

const dayMs = 24 * 60 * 60_000

/** How long what a PKI issues lives. */
export interface PkiLifetimes {
  readonly caMs: number
  readonly certificateMs: number
}

const defaultLifetimes: PkiLifetimes = { caMs: 3650 * dayMs, certificateMs: 365 * dayMs }

/** The keys and certificates of one cluster, under kubeadm's file names. */
export interface Pki {
  readonly directory: string
  /** Signs serving and client certificates; another one after it was replaced, so ask each time. */
  readonly clusterCa: CertificateAuthority
  /** Signs what may speak for users by request headers. */
  readonly frontProxyCa: CertificateAuthority
  readonly serving: { readonly certFile: string; readonly keyFile: string }
  readonly serviceAccount: ServiceAccountKey
  /** Takes over what becomes of the cluster CA's files until `signal` aborts. */
  followClusterCa(signal: AbortSignal): Promise<void>
  /** Calls back after the cluster CA has changed: whom to trust, or what signs. */
  onNewClusterCa(listener: () => void): void
  /** Issues the serving certificate if it is absent, near its end or lacks a name; true when it did. */
  ensureServing(sans: readonly string[]): Promise<boolean>
  /** A new client certificate with its key; nothing is written. */
  issueClient(
    subject: CertificateSubject,
    lifetimeMs?: number,
  ): Promise<IssuedCertificate & { readonly key: KeyObject }>
}

/** What a PKI needs from outside. */
export interface PkiOptions {
  readonly clock: Clock
  readonly log: Logger
  readonly lifetimes?: PkiLifetimes
}

/** Finds the cluster's keys and certificates again and checks them, or makes them on the first start. */
export async function openPki(directory: string, options: PkiOptions): Promise<Pki> {
  const { clock, log, lifetimes = defaultLifetimes } = options
  const at = (name: string) => join(directory, name)
  const serving = { certFile: at('apiserver.crt'), keyFile: at('apiserver.key') }
  await makePrivateDirectory(directory)
  const clusterFiles: AuthorityFiles = {
    name: 'cluster CA',
    certFile: at('ca.crt'),
    keyFile: at('ca.key'),
    crossFile: at(caRotationFiles.cross),
    commonName: 'kubernetes',
    signedFiles: [serving.certFile],
    lifetimeMs: lifetimes.caMs,
  }
  const [clusterCa, frontProxyCa, serviceAccount] = await Promise.all([
    openAuthority(clusterFiles, clock.now()),
    openAuthority(
      {
        name: 'front proxy CA',
        certFile: at('front-proxy-ca.crt'),
        keyFile: at('front-proxy-ca.key'),
        commonName: 'front-proxy-ca',
        signedFiles: [at('front-proxy-client.crt')],
        lifetimeMs: lifetimes.caMs,
      },
      clock.now(),
    ),
    openServiceAccountKey(at('sa.key'), at('sa.pub')),
  ])
  const followed = new FollowedAuthority(clusterFiles, clusterCa, { clock, log })
  const order = { ...serving, caFile: at('ca.crt'), commonName: 'kube-apiserver' }
  return {
    directory,
    get clusterCa() {
      return followed.current
    },
    frontProxyCa,
    serving,
    serviceAccount,
    followClusterCa: (signal) => followed.follow(signal),
    onNewClusterCa: (listener) => followed.onNew(listener),
    ensureServing: (sans) =>
      ensureServing(
        { ...order, ca: followed.current, lifetimeMs: lifetimes.certificateMs, sans },
        clock.now(),
        log,
      ),
    issueClient: (subject, lifetimeMs = lifetimes.certificateMs) =>
      issueKeyAndCertificate({
        ca: followed.current,
        subject,
        usages: ['client auth'],
        now: clock.now(),
        lifetimeMs,
      }),
  }
}
