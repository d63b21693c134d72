import { access, constants, stat } from 'node:fs/promises'
import { posix, win32 } from 'node:path'
import { goQuote } from '../../core/index.ts'
import type { PluginHost, Runnable } from './plugin.ts'

/** The file that a command stands for, or why there is none; `why` follows the command in a sentence. */
export type Lookup =
  | { readonly path: string }
  | {
      readonly problem: 'NOT_FOUND' | 'NOT_EXECUTABLE' | 'CONFIG_INVALID'
      readonly why: string
    }

/**
 * Finds the program of a command by the host's PATH. What the kubeconfig sets as PATH is for the plugin
 * alone, and a file that merely lies in the current directory is never run.
 */
export async function resolveCommand(command: string, host: PluginHost): Promise<Lookup> {
  const path = pathRules(host)
  if (path.isAbsolute(command)) {
    return firstRunnable([path.normalize(command)], host)
  }
  if (command.includes('/') || command.includes(path.sep)) {
    const why =
      'is a relative path of unknown origin: load the kubeconfig from its file, or make it absolute'
    return { problem: 'CONFIG_INVALID', why }
  }
  return inPath(command, host)
}

/** How the host's system writes paths. */
export const pathRules = ({ platform }: PluginHost): typeof posix =>
  platform === 'win32' ? win32 : posix

async function inPath(command: string, host: PluginHost): Promise<Lookup> {
  const path = pathRules(host)
  const directories = pathEntries(host)
  let unusable: Lookup | undefined
  for (const directory of directories) {
    const usable = path.isAbsolute(directory)
    const base = usable ? directory : path.resolve(host.cwd, directory)
    const found = await firstRunnable([path.join(base, command)], host)
    // Go's rule: whoever has such an entry would get the wrong program from a later one, unawares.
    if (!usable && 'path' in found) return { problem: 'NOT_FOUND', why: relativeHit(directory) }
    if ('path' in found) return found
    if (usable && found.problem !== 'NOT_FOUND') unusable ??= found
  }
  return (
    unusable ?? { problem: 'NOT_FOUND', why: `is not found in PATH${shortPathTip(directories)}` }
  )
}

const relativeHit = (entry: string): string =>
  `is found only by the relative PATH entry ${goQuote(entry || '.')}, which is not used: remove the entry, or name the program by its path`

/** Desktop programs of macOS start with this PATH, whatever the user's shell sets up. */
const launchdPath = '/usr/bin:/bin:/usr/sbin:/sbin'

const shortPathTip = (directories: readonly string[]): string =>
  directories.join(':') === launchdPath
    ? ' (a program started from the desktop does not see the PATH of your shell: give the plugin by its absolute path)'
    : ''

async function firstRunnable(bases: readonly string[], host: PluginHost): Promise<Lookup> {
  const lookAt = host.lookAt ?? lookAtFile
  for (const candidate of bases.flatMap((base) => candidates(base, host))) {
    const state = await lookAt(candidate)
    if (state === 'not-runnable') return { problem: 'NOT_EXECUTABLE', why: noRights(candidate) }
    if (state === 'missing') continue
    return isBatchFile(candidate, host) ? batchFile(candidate) : { path: candidate }
  }
  return { problem: 'NOT_FOUND', why: 'does not exist' }
}

const noRights = (path: string): string =>
  `is ${goQuote(path)}, which is not a file that may be executed`

const batchFile = (path: string): Lookup => ({
  problem: 'NOT_EXECUTABLE',
  why: `is the batch file ${goQuote(path)}, which only a shell can run: use a program instead`,
})

const isBatchFile = (path: string, host: PluginHost): boolean =>
  host.platform === 'win32' && /\.(cmd|bat)$/i.test(path)

/** On Windows a name without an ending stands for all the endings of programs. */
function candidates(base: string, host: PluginHost): string[] {
  if (host.platform !== 'win32') return [base]
  const endings = (variable(host, 'PATHEXT') ?? '.com;.exe;.bat;.cmd').split(';').filter(Boolean)
  const withEnding = endings.map((ending) => `${base}${ending.replace(/^\.?/, '.')}`)
  return win32.extname(base) === '' ? withEnding : [base, ...withEnding]
}

function pathEntries(host: PluginHost): string[] {
  const text = variable(host, 'PATH') ?? ''
  if (host.platform !== 'win32') return text === '' ? [] : text.split(':')
  const entries = text.match(/(?:"[^"]*"|[^;])+/g) ?? []
  return entries.map((entry) => entry.replaceAll('"', ''))
}

function variable(host: PluginHost, name: string): string | undefined {
  if (host.platform !== 'win32') return host.env[name]
  return Object.entries(host.env).find(([key]) => key.toUpperCase() === name)?.[1]
}

async function lookAtFile(path: string): Promise<Runnable> {
  const isFile = await stat(path).then(
    (found) => found.isFile(),
    () => undefined,
  )
  if (isFile === undefined) return 'missing'
  if (!isFile) return 'not-runnable'
  return access(path, constants.X_OK).then(
    () => 'runnable',
    () => 'not-runnable',
  )
}
