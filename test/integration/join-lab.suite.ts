import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  generateBootstrapToken,
  type StoredToken,
  tokenSecret,
  tokenText,
} from '../../src/bootstrap/index.ts'
import { commands } from '../../src/cli/commands.ts'
import type { Io } from '../../src/cli/io.ts'
import { type ExitCode, runCommand } from '../../src/cli/run-command.ts'
import type { InProcessServer } from '../support/in-process-server.ts'

/** How a join ended, and all that it said. */
export interface JoinEnd {
  readonly code: ExitCode
  readonly stdout: string
  readonly stderr: string
}

/** A join that may still be under way. */
export interface RunningJoin {
  readonly ended: Promise<JoinEnd>
  /** Resolves when it has said this on stderr or stdout; fails if it ends without. */
  says(words: string): Promise<void>
  stop(): void
}

/** Runs `sallyport join` in this process. */
export function startJoin(args: readonly string[], env: Io['env'] = {}): RunningJoin {
  const ending = new AbortController()
  const said = { stdout: '', stderr: '' }
  const listeners = new Set<() => void>()
  const hear = (stream: 'stdout' | 'stderr') => (text: string) => {
    said[stream] += text
    for (const listener of listeners) listener()
  }
  const io: Io = {
    env,
    interactive: false,
    columns: 80,
    isRoot: false,
    homeDirectory: '/nonexistent',
    stdout: hear('stdout'),
    stderr: hear('stderr'),
    drain: ending.signal,
    kill: new AbortController().signal,
  }
  const ended = runCommand(commands, ['join', ...args], io).then((code) => ({ code, ...said }))
  return {
    ended,
    stop: () => ending.abort(),
    says: (words) =>
      new Promise((resolve, reject) => {
        const listen = (): void => {
          if (!said.stderr.includes(words) && !said.stdout.includes(words)) return
          listeners.delete(listen)
          resolve()
        }
        listeners.add(listen)
        ended.then(
          () => reject(new Error(`it ended without saying ${words}:\n${said.stderr}`)),
          reject,
        )
        listen()
      }),
  }
}

/** Makes a token on a server; returns it as a text. */
export async function createToken(
  server: InProcessServer,
  changes: Partial<StoredToken> = {},
): Promise<string> {
  const stored: StoredToken = {
    token: generateBootstrapToken(),
    usages: new Set(['signing', 'authentication']),
    extraGroups: ['system:bootstrappers:kubeadm:default-node-token'],
    ...changes,
  }
  const path = '/api/v1/namespaces/kube-system/secrets'
  const admin = await server.admin()
  const answer = await admin.request(path, { method: 'POST', body: tokenSecret(stored) })
  if (answer.status !== 201) throw new Error(answer.text)
  return tokenText(stored.token).reveal()
}

/** A directory for what a test writes. */
export async function scratch(): Promise<{ readonly path: string; remove(): Promise<void> }> {
  const path = await mkdtemp(join(tmpdir(), 'sallyport-join-'))
  return { path, remove: () => rm(path, { recursive: true, force: true }) }
}
