import { join } from 'node:path'
import { oldAddonKey } from '../../addon/token/index.ts'
import {
  type ClusterView,
  CommandFailed,
  hasReason,
  type KubeObject,
  type Logger,
  SallyportError,
  type SealedValues,
  wellKnownKinds,
} from '../../core/index.ts'
import { oldSigningKeys } from '../../issuer/index.ts'
import { openStoreKey, type Pki } from '../../pki/index.ts'
import { hasSealedValues, RecordDamaged, SealedStore, type Store } from '../../storage/index.ts'

/** The Secrets in which earlier versions kept what is sealed now. */
const oldSecrets = [oldSigningKeys, oldAddonKey] as const

/** Present once Secrets are no longer read: one that is written later has no effect. */
const migrationName = 'migrated-from-secrets'

/** Opens the sealed values of a store; throws if the key that decrypts them is missing or another one. */
export async function openSealedValues(
  store: Store,
  { directory }: Pick<Pki, 'directory'>,
  log: Logger,
): Promise<SealedValues> {
  const mayCreate = !hasSealedValues(store)
  const storeKey = await openStoreKey(join(directory, 'store-key'), { mayCreate })
  const values = new SealedStore(store, storeKey, log)
  values.verify()
  return values
}

/**
 * Copies keys that an earlier version kept in Secrets to sealed values, once per store. The function that
 * is returned removes the Secrets; it must be called before the port is open, when the cluster accepts writes. In this
 * order it can be interrupted at any point: sealed, deleted, removed from the history, recorded.
 */
export async function migrateSecrets(
  deps: { readonly store: Store; readonly view: ClusterView; readonly log: Logger },
  values: SealedValues,
  signal: AbortSignal,
): Promise<() => Promise<void>> {
  const { store, view, log } = deps
  const isDone = (await values.get(migrationName, signal)) !== undefined
  const found: { readonly secret: KubeObject; readonly isMoved: boolean }[] = []
  for (const old of oldSecrets) {
    const secret = await view.get(wellKnownKinds.secret, old.key, signal)
    if (secret?.['type'] !== old.type) continue
    const value = isDone ? undefined : readSecret(old, secret)
    const seal = (present: unknown) => (present ? undefined : value)
    found.push({ secret, isMoved: await values.change(old.name, seal, signal) })
  }
  return async () => {
    for (const { secret, isMoved } of found) {
      await remove(view, secret, signal)
      const { namespace, name } = secret.metadata
      log.warn(
        { secret: `${namespace}/${name}` },
        isMoved
          ? 'signing keys moved from a Secret to the sealed store; rotate them if other users could read it'
          : 'Secret deleted: signing keys are in the sealed store, and those of a Secret are not used',
      )
    }
    if (isDone) return
    // Watches and lists of an earlier revision would still return what was deleted.
    if (historyHasKeys(store)) await store.compact()
    await values.change(
      migrationName,
      (present) => (present ? undefined : Buffer.from('1')),
      signal,
    )
  }
}

function readSecret(old: (typeof oldSecrets)[number], secret: KubeObject): Buffer {
  try {
    return old.read(secret)
  } catch (error) {
    if (!(error instanceof SallyportError)) throw error
    const { namespace, name } = old.key
    throw new CommandFailed(
      error.code,
      `cannot move the Secret ${namespace}/${name} to the sealed store: ${error.message}`,
      {
        hint: 'start the previous version, repair or delete the Secret, and upgrade again',
        cause: error,
      },
    )
  }
}

function historyHasKeys(store: Store): boolean {
  const endings = oldSecrets.map(({ key }) => `/secrets/${key.namespace}/${key.name}`)
  let found = false
  try {
    const replay = store.watch('', store.oldestRevision, (events) => {
      found ||= events.some(({ record }) => endings.some((ending) => record.key.endsWith(ending)))
    })
    replay.close()
    return found
  } catch (error) {
    if (error instanceof RecordDamaged) return true
    throw error
  }
}

async function remove(view: ClusterView, secret: KubeObject, signal: AbortSignal): Promise<void> {
  await view.write('delete', secret, {}, signal).catch((error: unknown) => {
    if (!hasReason(error, 'NotFound')) throw error
  })
}
