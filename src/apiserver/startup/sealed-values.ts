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

/** Where the values that the server seals came from before. */
const oldSecrets = [oldSigningKeys, oldAddonKey] as const

/** Says that Secrets are not read any more: whoever writes one later has no effect. */
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
 * Moves keys that an earlier version kept in Secrets to sealed values, once in the life of a store
 * and before the port is open. In this order it can be interrupted at any point: sealed, deleted,
 * removed from the history, noted.
 */
export async function migrateSecrets(
  parts: { readonly store: Store; readonly view: ClusterView; readonly log: Logger },
  values: SealedValues,
  signal: AbortSignal,
): Promise<void> {
  const { store, view, log } = parts
  const isDone = (await values.get(migrationName, signal)) !== undefined
  for (const old of oldSecrets) {
    const secret = await view.get(wellKnownKinds.secret, old.key, signal)
    if (secret?.['type'] !== old.type) continue
    const value = isDone ? undefined : readSecret(old, secret)
    const isMoved = await values.change(
      old.name,
      (present) => (present ? undefined : value),
      signal,
    )
    await remove(view, secret, signal)
    const secretName = `${old.key.namespace}/${old.key.name}`
    log.warn(
      { secret: secretName },
      isMoved
        ? 'signing keys moved from a Secret to the sealed store; rotate them if others could read it'
        : 'Secret deleted: signing keys are in the sealed store, and those of a Secret are not used',
    )
  }
  if (isDone) return
  // Watches and lists of an earlier revision would still show what was deleted.
  if (historyHasKeys(store)) await store.compact()
  await values.change(migrationName, (present) => (present ? undefined : Buffer.from('1')), signal)
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
        hint: 'start the version before, mend or delete the Secret, and upgrade again',
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
