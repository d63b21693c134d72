import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { command } from '../sallyport.ts'
import type { ApiClient } from './api-client.ts'
import { everyChangeOnce, inOrderOnce, type ObjectLedger } from './ledger.ts'
import type { Observer } from './observers.ts'
import { itemsIn } from './seen.ts'
import { collection } from './writer.ts'

/** What is there must be what was acknowledged last, object by object. */
export async function compareState(
  client: ApiClient,
  ledgers: readonly ObjectLedger[],
): Promise<string[]> {
  const { body } = await client.ask('GET', collection)
  const found = new Map(itemsIn(body).map((item) => [item.name, item]))
  const problems: string[] = []
  for (const { name, now } of ledgers) {
    const is = found.get(name)
    found.delete(name)
    if (is?.version === now?.version && is?.uid === now?.uid) continue
    const there = is ? `version ${is.version}` : 'nothing'
    problems.push(
      `${name}: ${there} is there, ${now ? `version ${now.version}` : 'nothing'} should be`,
    )
  }
  // The server puts one of its own into every namespace.
  found.delete('kube-root-ca.crt')
  for (const name of found.keys()) problems.push(`${name} is there and was never written`)
  return problems
}

/** No two changes have the same version, whatever the objects. */
export function compareVersions(ledgers: readonly ObjectLedger[]): string[] {
  const owner = new Map<string, string>()
  const problems: string[] = []
  for (const { name, changes } of ledgers) {
    for (const change of changes) {
      if (!('put' in change)) continue
      const other = owner.get(change.put)
      if (other) problems.push(`version ${change.put} was given to ${other} and to ${name}`)
      owner.set(change.put, name)
    }
  }
  return problems
}

/** The strict watch and the informer against what was written. */
export function compareObservers(
  ledgers: readonly ObjectLedger[],
  observers: { readonly watch: Observer; readonly informer: Observer },
): string[] {
  return ledgers.flatMap((ledger) => [
    ...everyChangeOnce(ledger, observers.watch.events.get(ledger.name) ?? []),
    ...inOrderOnce(ledger, observers.informer.events.get(ledger.name) ?? []),
  ])
}

/** `sallyport store check`, which reads every record. */
export function checkStore(directory: string): string[] {
  const args = [command, 'store', 'check', '--data-dir', join(directory, 'data')]
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' })
  return status === 0 ? [] : [`store check ended with ${status}: ${stdout}${stderr}`]
}
