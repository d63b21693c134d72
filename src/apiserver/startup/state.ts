import type { Clock, Closers, Logger, SealedValues } from '../../core/index.ts'
import {
  openPki,
  openServingCertificate,
  type Pki,
  type ServingCertificate,
} from '../../pki/index.ts'
import { acquireDirectoryLock, openEmbeddedStore, type Store } from '../../storage/index.ts'
import { type DataDirectory, openDataDirectory } from '../data-directory/index.ts'
import type { ServerOptions } from '../options/options.ts'
import { clusterBundle, openTrustBundle, type TrustBundle } from '../trust-bundle.ts'
import { openSealedValues } from './sealed-values.ts'
import { servingNames } from './serving-names.ts'

/** The process that a server runs in, as far as it matters to files and locks. */
export interface ServerProcess {
  readonly pid: number
  readonly userId: number | undefined
  readonly isRunning: (pid: number) => boolean
}

/** What a server keeps between its runs. */
export interface ServerState {
  readonly directory: DataDirectory
  readonly pki: Pki
  readonly store: Store
  /** What the server keeps for itself: no path of the API leads there. */
  readonly sealed: SealedValues
}

/** Opens the data directory and everything in it; nobody else can while the lock is held. */
export async function openState(
  path: string,
  parts: { readonly process: ServerProcess; readonly clock: Clock; readonly log: Logger },
  closers: Closers,
): Promise<ServerState> {
  const { process, clock, log } = parts
  const directory = await openDataDirectory(path, process.userId)
  const lock = await acquireDirectoryLock(directory.path, process)
  closers.add('lock', () => lock.release())
  const opening = [
    openPki(directory.pki, { clock, log }),
    openStore(directory.store, { clock, log }, closers),
  ] as const
  // Whoever fails waits for the other, so that nothing is written any more once the start has failed.
  await Promise.allSettled(opening)
  const [pki, store] = await Promise.all(opening)
  return { directory, pki, store, sealed: await openSealedValues(store, pki, log) }
}

/** To be closed as soon as it is open, whatever else fails to open beside it. */
async function openStore(
  directory: string,
  parts: { readonly clock: Clock; readonly log: Logger },
  closers: Closers,
): Promise<Store> {
  const store = await openEmbeddedStore({ directory, ...parts })
  closers.add('store', () => store.close())
  return store
}

/** The certificate that the server shows: from the files given, or from its own PKI. */
export async function openServing(
  options: ServerOptions,
  pki: Pki,
  serviceAddress: string,
  parts: { readonly clock: Clock; readonly log: Logger },
): Promise<ServingCertificate> {
  const { tlsCertFile, tlsPrivateKeyFile } = options
  if (tlsCertFile !== undefined && tlsPrivateKeyFile !== undefined)
    return openServingCertificate({
      certFile: tlsCertFile,
      keyFile: tlsPrivateKeyFile,
      ...parts,
    })
  const names = servingNames(options, serviceAddress)
  await pki.ensureServing(names)
  return openServingCertificate({
    ...pki.serving,
    renew: () => pki.ensureServing(names),
    ...parts,
  })
}

/** The CA of client certificates: the file given, or the cluster's own. */
export async function openClientCa(
  options: ServerOptions,
  pki: Pki,
  parts: { readonly log: Logger; readonly signal: AbortSignal },
): Promise<TrustBundle> {
  return options.clientCaFile === undefined
    ? clusterBundle(pki)
    : openTrustBundle(options.clientCaFile, parts)
}
