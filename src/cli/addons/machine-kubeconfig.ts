import { stat } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { type Clock, readFileIfPresent } from '../../core/index.ts'
import type { Serving } from '../../server/index.ts'

const dayMs = 24 * 60 * 60_000
const lifetimeMs = 90 * dayMs
const renewAfterMs = 30 * dayMs

/** The kubeconfig under which this machine runs add-ons; made anew when it is old or the CA is another. */
export async function ensureMachineKubeconfig(
  { view, pki, url: server }: Serving,
  namespace: string,
  where: { readonly directory: string; readonly clock: Clock; readonly signal: AbortSignal },
): Promise<string> {
  const { directory, clock, signal } = where
  const file = join(directory, 'addons.kubeconfig')
  const present = await readFileIfPresent(file)
  const authority = Buffer.from(pki.clusterCa.bundlePem).toString('base64')
  const isGood = present?.includes(authority) === true && present.includes(server)
  if (isGood && clock.now() - (await stat(file)).mtimeMs < renewAfterMs) return file
  const { createMachine } = await import('../../server/users/index.ts')
  const { writeKubeconfig } = await import('../../kubeconfig/index.ts')
  const machine = { name: machineName(), namespaces: [namespace], lifetimeMs, server } as const
  const { kubeconfig } = await createMachine(machine, { view, pki, clock }, signal)
  await writeKubeconfig(file, kubeconfig)
  return file
}

/** This machine's, as far as it can be the name of one. */
function machineName(): string {
  const plain = hostname()
    .toLowerCase()
    .replaceAll(/[^-a-z0-9]+/g, '-')
    .replaceAll(/^-+|-+$/g, '')
  return `${plain.slice(0, 50) || 'machine'}-addons`
}
