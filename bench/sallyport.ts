import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Child, startChild } from './child.ts'

/** The user of all measurements, the same as in `interop/peers/run-kube-apiserver`. */
export const token = 'bench-0123456789abcdef'
const tokenFile = `${token},admin,admin,system:masters\n`

/** A running `sallyport up` and how to reach it as a bearer of `token`. */
export interface Sallyport extends Child {
  readonly server: string
  readonly kubeconfig: string
  readonly caPem: string
}

/** The command of the build that this file is part of. */
export const command = fileURLToPath(new URL('../src/cli/main.js', import.meta.url))

/** What `sallyport up` is started with; its state and its token file are in `directory`. */
export function upArguments(directory: string, port: number): string[] {
  const flags = ['--data-dir', join(directory, 'data'), '--secure-port', String(port)]
  const tokens = join(directory, 'tokens.csv')
  return [command, 'up', ...flags, '--token-auth-file', tokens, '--output', 'json']
}

/** Flags for the server besides those that all benches give it, and flags for Node. */
interface FurtherFlags {
  readonly flags?: readonly string[]
  readonly nodeFlags?: readonly string[]
}

/** Starts `sallyport up` and waits until it serves. */
export async function startSallyport(
  directory: string,
  port = 0,
  { flags = [], nodeFlags = [] }: FurtherFlags = {},
): Promise<Sallyport> {
  await writeFile(join(directory, 'tokens.csv'), tokenFile, { mode: 0o600 })
  const args = [...nodeFlags, ...upArguments(directory, port), ...flags]
  const child = await startChild(process.execPath, args)
  const said: unknown = JSON.parse(child.firstLine)
  if (!(said instanceof Object && 'server' in said && typeof said.server === 'string')) {
    throw new Error(`sallyport up said ${child.firstLine}`)
  }
  const caPem = await readFile(join(directory, 'data', 'pki', 'ca.crt'), 'utf8')
  const kubeconfig = join(directory, 'kubeconfig')
  await writeFile(kubeconfig, tokenKubeconfig(said.server, caPem), { mode: 0o600 })
  return { ...child, server: said.server, kubeconfig, caPem }
}

/** A kubeconfig for a bearer of `token`. */
export function tokenKubeconfig(server: string, caPem: string): string {
  const ca = Buffer.from(caPem).toString('base64')
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'bench', cluster: { server, 'certificate-authority-data': ca } }],
    users: [{ name: 'bench', user: { token } }],
    contexts: [{ name: 'bench', context: { cluster: 'bench', user: 'bench' } }],
    'current-context': 'bench',
  })
}
