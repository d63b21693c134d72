import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { rawHeaderValues } from '../../src/http/index.ts'
import { ProxyLab } from '../../src/local-proxy/proxy-lab.suite.ts'
import { runInProcess } from '../support/in-process-command.ts'
import { runSallyport } from '../support/sallyport-process.ts'

let lab: ProxyLab
let directory: string

beforeAll(async () => {
  lab = await ProxyLab.open()
  directory = await mkdtemp(join(tmpdir(), 'proxy-command-'))
})
beforeEach(() => {
  lab.api.seen.length = 0
})
afterAll(async () => {
  await lab.close()
  await rm(directory, { recursive: true, force: true })
})

async function putKubeconfig(user: object, serverPath = ''): Promise<string> {
  const path = join(directory, 'kubeconfig')
  const cluster = {
    server: lab.server + serverPath,
    'certificate-authority-data': Buffer.from(lab.caPem).toString('base64'),
  }
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'lab',
    clusters: [{ name: 'lab', cluster }],
    users: [{ name: 'jane', user }],
    contexts: [{ name: 'lab', context: { cluster: 'lab', user: 'jane' } }],
  }
  await writeFile(path, JSON.stringify(config))
  return path
}

/** Runs the command until `use` is done with its first line, then asks it to end. */
async function whileServing(
  args: readonly string[],
  use: (line: string) => Promise<void>,
  env: Readonly<Record<string, string>> = {},
): Promise<{ code: number | null; stdout: string; stderr: string }> {
  let failure: Error | undefined
  const begin = async (line: string, child: ChildProcess): Promise<void> => {
    await use(line).catch((error: Error) => {
      failure = error
    })
    child.kill('SIGTERM')
  }
  let begun = false
  const ended = await runSallyport(['proxy', ...args], {
    env: { KUBECONFIG: join(directory, 'kubeconfig'), ...env },
    onStdout: (said, child) => {
      if (begun || !said.includes('\n')) return
      begun = true
      void begin(said, child)
    },
  })
  if (failure) throw failure
  return ended
}

async function ask(target: { port: number } | { socketPath: string }): Promise<number | undefined> {
  const request = httpRequest({ ...target, path: '/api', headers: { host: 'localhost' } }).end()
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  await text(response)
  return response.statusCode
}

const portOf = (line: string): number => Number(/:(\d+)\D*$/.exec(line)?.[1])

describe('sallyport proxy', () => {
  test("[CRED-P1] says kubectl's line, serves with the user's token and ends when it is told to", async () => {
    await putKubeconfig({ token: 'janes-token' })
    const { code, stdout, stderr } = await whileServing(['--port', '0'], async (line) => {
      expect(line).toMatch(/^Starting to serve on 127\.0\.0\.1:\d+\n$/)
      expect(await ask({ port: portOf(line) })).toBe(200)
    })
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).not.toContain('janes-token')
    const { rawHeaders } = lab.api.last
    expect(rawHeaderValues(rawHeaders, 'authorization')).toEqual(['Bearer janes-token'])
  })

  const putPlugin = async (): Promise<string> => {
    const plugin = join(directory, 'plugin')
    const runs = join(directory, 'runs')
    const credential = {
      apiVersion: 'client.authentication.k8s.io/v1',
      kind: 'ExecCredential',
      status: { token: 'from-plugin' },
    }
    await writeFile(
      plugin,
      `#!/bin/sh\necho run >> ${runs}\ncat <<'END'\n${JSON.stringify(credential)}\nEND\n`,
    )
    await chmod(plugin, 0o700)
    await putKubeconfig({
      exec: {
        apiVersion: 'client.authentication.k8s.io/v1',
        command: plugin,
        interactiveMode: 'Never',
      },
    })
    await rm(runs, { force: true })
    return runs
  }

  test('[CRED-P1] runs the exec plugin of the user, once', async () => {
    const runs = await putPlugin()
    const { code } = await whileServing(['-p', '0'], async (line) => {
      const target = { port: portOf(line) }
      expect(await Promise.all([ask(target), ask(target), ask(target)])).toEqual([200, 200, 200])
    })
    expect(code).toBe(0)
    expect(await readFile(runs, 'utf8')).toBe('run\n')
    expect(rawHeaderValues(lab.api.last.rawHeaders, 'authorization')).toEqual([
      'Bearer from-plugin',
    ])
  })

  test('[CRED-E15] runs no plugin that the kuberc of the user forbids', async () => {
    const runs = await putPlugin()
    const kuberc = join(directory, 'kuberc')
    const rules = { apiVersion: 'kubectl.config.k8s.io/v1beta1', kind: 'Preference' }
    await writeFile(kuberc, JSON.stringify({ ...rules, credentialPluginPolicy: 'DenyAll' }))
    const { code, stderr } = await whileServing(
      ['-p', '0'],
      async (line) => expect(await ask({ port: portOf(line) })).toBe(502),
      { KUBERC: kuberc },
    )
    expect(code).toBe(0)
    expect(stderr).toContain('may not run')
    await expect(stat(runs)).rejects.toMatchObject({ code: 'ENOENT' })
    expect(lab.api.seen).toEqual([])
  })

  test('[CRED-P4] serves on a unix socket', async () => {
    await putKubeconfig({ token: 'janes-token' })
    const path = join(directory, 'k.sock')
    const { code } = await whileServing(['-u', path], async (line) => {
      expect(line).toBe(`Starting to serve on ${path}\n`)
      expect(await ask({ socketPath: path })).toBe(200)
    })
    expect(code).toBe(0)
    await expect(stat(path)).rejects.toMatchObject({ code: 'ENOENT' })
  })

  test('tells where it serves as JSON', async () => {
    await putKubeconfig({ token: 'janes-token' })
    const { stdout } = await whileServing(['-p', '0', '--output', 'json'], async (line) => {
      expect(JSON.parse(line)).toEqual({
        address: expect.stringMatching(/^127\.0\.0\.1:\d+$/),
        server: lab.server,
      })
    })
    expect(stdout.trim().split('\n')).toHaveLength(1)
  })

  test('warns of what is dangerous or probably not meant', async () => {
    await putKubeconfig({ token: 'janes-token' }, '/clusters/c1')
    const flags = ['--disable-filter', '--address', '0.0.0.0', '--www', '/nowhere']
    const { stderr } = await whileServing(['-p', '0', ...flags], async () => {})
    expect(stderr.match(/^warning: .*$/gm)).toEqual([
      expect.stringContaining('--append-server-path'),
      expect.stringContaining('every web page'),
      expect.stringContaining('0.0.0.0'),
      expect.stringContaining('/nowhere'),
    ])
  })

  test.each([
    [2, ['--unix-socket', '/tmp/x', '--port', '9000'], 'cannot be set at the same time'],
    [2, ['--accept-hosts', '('], 'is no regular expression'],
    [2, ['--port', '70000'], '--port'],
    [2, ['--keepalive', 'long'], '--keepalive'],
    [1, ['--context', 'none'], 'context "none" does not exist'],
    [1, ['--kubeconfig', '/nowhere'], 'there is no kubeconfig /nowhere'],
  ])('[CRED-P4] ends with %i for %s', async (code, flags, message) => {
    const kubeconfig = await putKubeconfig({ token: 'janes-token' })
    const outcome = await runInProcess(['proxy', ...flags], { env: { KUBECONFIG: kubeconfig } })
    expect(outcome.code).toBe(code)
    expect(outcome.stderr).toContain(message)
    expect(outcome.stdout).toBe('')
  })

  test('says which port is in use, and what to do', async () => {
    const kubeconfig = await putKubeconfig({ token: 'janes-token' })
    const { port } = await lab.proxy()
    const outcome = await runInProcess(['proxy', '--port', String(port)], {
      env: { KUBECONFIG: kubeconfig },
    })
    expect(outcome.code).toBe(1)
    expect(outcome.stderr).toContain(`cannot listen on 127.0.0.1:${port}: the port is in use`)
    expect(outcome.stderr).toContain('hint: ')
  })
})
