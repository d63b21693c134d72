import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import { Secret } from '../../core/index.ts'
import type { ExecConfig } from '../../kubeconfig/index.ts'
import { CredentialError } from '../errors.ts'
import { nodePluginHost } from './node-plugin-host.ts'
import type { PluginHost } from './plugin.ts'

/** The versions by their short names. */
export const version = (name: 'v1alpha1' | 'v1beta1' | 'v1'): string =>
  `client.authentication.k8s.io/${name}`

/** The path of a stand-in plugin. */
export const standIn = (name: string): string =>
  fileURLToPath(new URL(`../../../test/support/exec-plugins/${name}`, import.meta.url))

/** An exec section; the values of its env are given as plain text. */
export function execConfig(
  command: string,
  rest: Partial<Omit<ExecConfig, 'env'>> & { readonly env?: Readonly<Record<string, string>> } = {},
): ExecConfig {
  const { env, ...others } = rest
  const variables = Object.entries(env ?? {})
  return {
    command,
    apiVersion: version('v1'),
    interactiveMode: 'Never',
    ...others,
    ...(env && { env: variables.map(([name, value]) => ({ name, value: new Secret(value) })) }),
  }
}

/** A host without a terminal, whose plugins may complain in silence. */
export const labHost = (rules: Partial<PluginHost> = {}): PluginHost =>
  nodePluginHost({ stdinIsTty: () => false, stderr: new Heard(), killGraceMs: 200, ...rules })

/** A stream that remembers what was written. */
export class Heard extends Writable {
  text = ''
  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.text += chunk.toString()
    done()
  }
}

/** A directory that is gone after the test. */
export function freshDirectory(): string {
  const path = mkdtempSync(join(tmpdir(), 'sallyport-exec-'))
  onTestFinished(() => rmSync(path, { recursive: true, force: true }))
  return path
}

/** Writes a program into a directory. */
export function writeProgram(directory: string, name: string, text: string, mode = 0o755): string {
  const path = join(directory, name)
  writeFileSync(path, text, { mode })
  return path
}

/** The failure of something that must fail. */
export async function failureOf(attempt: Promise<unknown>): Promise<CredentialError> {
  const error = await attempt.then(
    () => new Error('it did not fail'),
    (cause: unknown) => cause,
  )
  if (error instanceof CredentialError) return error
  throw new Error('not a CredentialError', { cause: error })
}

/** Says whether a process still runs; one that waits to be collected does not. */
export function isRunning(pid: number): boolean {
  const path = `/proc/${pid}/stat`
  if (!existsSync('/proc/self/stat')) return process.kill(pid, 0)
  return existsSync(path) && !/\) [ZX] /.test(readFileSync(path, 'utf8'))
}
