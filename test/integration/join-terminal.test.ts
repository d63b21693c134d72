import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { buildOnce } from '../build-once.ts'
import { type InProcessServer, startInProcess } from '../support/in-process-server.ts'
import { createToken, scratch } from './join-lab.suite.ts'

// The terminal is made by script(1) of util-linux; other systems have one with other options.
const terminalMaker = 'script'
const hasScript = spawnSync(terminalMaker, ['--version'], { encoding: 'utf8' }).stdout?.includes(
  'util-linux',
)
if (!hasScript) console.log('skipped: joining at a terminal needs script(1) of util-linux')

describe.skipIf(!hasScript)('at a terminal', () => {
  let server: InProcessServer
  let directory: Awaited<ReturnType<typeof scratch>>
  let program = ''
  beforeAll(async () => {
    server = await startInProcess()
    directory = await scratch()
    program = join(await buildOnce(), 'cli', 'main.js')
  }, 120_000)
  afterAll(async () => {
    await server.close()
    await directory.remove()
  })

  /** Runs a join on a terminal of its own. */
  function atTerminal(...args: readonly string[]) {
    // exec: a shell that stayed between would answer Ctrl-C with an exit code of its own.
    const command = ['exec', process.execPath, program, 'join', ...args].join(' ')
    const child = spawn(terminalMaker, ['-qefc', command, '/dev/null'], { stdio: 'pipe' })
    onTestFinished(() => void child.kill())
    let screen = ''
    child.stdout.on('data', (chunk) => {
      screen += String(chunk)
    })
    const ended = once(child, 'close').then(([code]) => code as number)
    return {
      screen: () => screen,
      ended,
      type: (text: string) => child.stdin.write(text),
      shows: async (text: string) => {
        while (!screen.includes(text)) await Promise.race([once(child.stdout, 'data'), ended])
      },
    }
  }

  test('the token is asked for and not shown [DISC-C3, DISC-T9]', async () => {
    const token = await createToken(server)
    const out = join(directory.path, 'a.kubeconfig')
    const where = [`127.0.0.1:${server.port}`, '--discovery-only', '--out', out]
    const session = atTerminal(...where, '--token', '-')
    await session.shows('Token (it is not shown): ')
    session.type(`${token.slice(0, -1)}x\u007F${token.slice(-1)}\r`)
    expect(await session.ended).toBe(0)
    expect(session.screen()).not.toContain(token.slice(7, 15))
    expect(readFileSync(out, 'utf8')).toContain(`https://127.0.0.1:${server.port}`)
  }, 60_000)

  test('after the token Ctrl-C ends it again', async () => {
    const session = atTerminal('127.0.0.1:1', '--token', '-', '--out', '-')
    await session.shows('Token (it is not shown): ')
    session.type('abcdef.q7w8e9r0t1y2u3i4\r')
    await session.shows('nothing listens at 127.0.0.1:1')
    session.type('\u0003')
    expect(await session.ended).toBe(1)
    expect(session.screen()).toContain('ended while waiting')
  }, 60_000)

  test('a document is asked for in words [DISC-R13]', async () => {
    const session = atTerminal('--cluster-info-file', '-', '--discovery-only', '--out', '-')
    await session.shows('Paste the document that locates the cluster, then Enter and Ctrl-D:')
    session.type('\u0004')
    expect(await session.ended).toBe(1)
    expect(session.screen()).toContain('there is nothing in standard input')
  }, 60_000)
})
