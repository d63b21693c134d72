import { join } from 'node:path'
import { CommandFailed, isRecord, readFileIfPresent, systemErrorCode } from '../core/index.ts'
import { KubeconfigInvalid } from './kubeconfig.ts'
import { parseKubeYaml } from './parse.ts'

/** Where a user's preferences are. */
export interface KubercSources {
  /** The value of KUBERC: a file, or `off`. */
  readonly kuberc?: string | undefined
  readonly home: string
}

/** The user's preferences for kubectl, which say among others what plugins may run; undefined if there are none. */
export async function loadKuberc(
  sources: KubercSources,
): Promise<Readonly<Record<string, unknown>> | undefined> {
  if (sources.kuberc === 'off') return undefined
  const path = sources.kuberc || join(sources.home, '.kube', 'kuberc')
  const text = await read(path)
  if (text === undefined) {
    if (sources.kuberc) throw unusable(path, 'ENOENT')
    return undefined
  }
  const value = await parseKubeYaml(text, path)
  if (value === null || value === undefined) return undefined
  // Rules that cannot be read must not be taken for none.
  if (!isRecord(value)) throw new KubeconfigInvalid(path, ['must be a map'])
  const { kind } = value
  if (kind !== undefined && kind !== 'Preference') {
    throw new KubeconfigInvalid(path, ['kind must be Preference'])
  }
  return value
}

async function read(path: string): Promise<string | undefined> {
  try {
    return await readFileIfPresent(path)
  } catch (cause) {
    throw unusable(path, systemErrorCode(cause) ?? 'unknown error', cause)
  }
}

const unusable = (path: string, code: string, cause?: unknown): CommandFailed =>
  new CommandFailed('KUBERC_UNREADABLE', `cannot read the preferences ${path}: ${code}`, {
    hint: 'set KUBERC to a file that this user may read, or to off',
    cause,
  })
