import type { Clock, Closers, Logger, SealedValues } from '../../core/index.ts'
import {
  openPki,
  openServingCertificate,
  type Pki,
  type ServingCertificate,
} from '../../pki/index.ts'
import { acquireDirectoryLock, openEmbeddedStore, type Store } from '../../storage/index.ts'
import { clusterBundle, openTrustBundle, type TrustBundle } from '../client-trust.ts'
import { type DataDirectory, openDataDirectory } from '../data-directory/index.ts'
import type { ServerOptions } from '../options/options.ts'
import { openSealedValues } from './sealed-values.ts'
import { servingNames } from './serving-names.ts'

/** The process that a server runs in, for files and locks. */
export interface ServerProcess {
  readonly pid: number
  readonly userId: number | undefined
  readonly isRunning: (pid: number) => boolean
}

/** What a server keeps across restarts. */
export interface ServerState {
  readonly directory: DataDirectory
  readonly pki: Pki
  readonly store: Store
  /** Values that no path of the API reaches. */
  readonly sealed: SealedValues
}

/** Opens the data directory and everything in it, and locks it for other processes. */
export async function openState(
  path: string,
  deps: { readonly process: ServerProcess; readonly clock: Clock; readonly log: Logger },
  closers: Closers,
): Promise<ServerState> {
  const { process, clock, log } = deps
  const directory = await openDataDirectory(path, process.userId)
  const lock = await acquireDirectoryLock(directory.path, process)
  closers.add('lock', () => lock.release())
  const opening = [
    openPki(directory.pki, { clock, log }),
    openStore(directory.store, { clock, log }, closers),
  ] as const
  // A failure of one waits for the other, so that nothing is written after the start has failed.
  await Promise.allSettled(opening)
  const [pki, store] = await Promise.all(opening)
  return { directory, pki, store, sealed: await openSealedValues(store, pki, log) }
}

/** Registered for closing as soon as it is open, in case the PKI fails to open. */
async function openStore(
  directory: string,
  deps: { readonly clock: Clock; readonly log: Logger },
  closers: Closers,
): Promise<Store> {
  const store = await openEmbeddedStore({ directory, ...deps })
  closers.add('store', () => store.close())
  return store
}

/** The serving certificate: from the files given, or from the server's own PKI. */
export async function openServing(
  options: ServerOptions,
  pki: Pki,
  serviceAddress: string,
  deps: { readonly clock: Clock; readonly log: Logger },
): Promise<ServingCertificate> {
  const { tlsCertFile, tlsPrivateKeyFile } = options
  if (tlsCertFile !== undefined && tlsPrivateKeyFile !== undefined)
    return openServingCertificate({
      certFile: tlsCertFile,
      keyFile: tlsPrivateKeyFile,
      ...deps,
    })
  const names = servingNames(options, serviceAddress)
  await pki.ensureServing(names)
  return openServingCertificate({
    ...pki.serving,
    renew: () => pki.ensureServing(names),
    ...deps,
  })
}

/** The CA of client certificates: the file given, or the cluster's own. */
export async function openClientCa(
  options: ServerOptions,
  pki: Pki,
  deps: { readonly log: Logger; readonly signal: AbortSignal },
): Promise<TrustBundle> {
  return options.clientCaFile === undefined
    ? clusterBundle(pki)
    : openTrustBundle(options.clientCaFile, deps)
}
