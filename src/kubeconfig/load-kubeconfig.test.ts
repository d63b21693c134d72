import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join, relative } from 'node:path'
import process from 'node:process'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Secret } from '../core/index.ts'
import { loadContext, loadKubeconfig } from './load.ts'
import { makeKubeconfig, writeKubeconfig } from './write.ts'

let home: string
const at = (name: string) => join(home, name)
const list = (...names: string[]) => names.map((name) => (name ? at(name) : '')).join(delimiter)

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'kubeconfig-'))
  await mkdir(at('sub'))
})
afterEach(() => rm(home, { recursive: true }))

const put = (name: string, text: string) => writeFile(at(name), text)
const cluster = (name: string, server: string, more = '') =>
  `clusters: [{name: ${name}, cluster: {server: ${server}${more}}}]\n`

describe('loading', () => {
  test('takes the first entry of each name as a whole, and the first context that is set [CRED-K1, CRED-K2]', async () => {
    await put('a', `current-context: ""\n${cluster('c', 'first')}`)
    await put('b', `current-context: b\n${cluster('c', 'second', ', tls-server-name: x')}`)
    await put('d', `current-context: d\n${cluster('other', 'third')}`)
    const { config, files, missing, warnings } = await loadKubeconfig({
      kubeconfig: list('a', '', 'none', 'b', 'a', 'd'),
      home,
    })
    expect(config.currentContext).toBe('b')
    expect(Object.fromEntries(config.clusters)).toEqual({
      c: { server: 'first' },
      other: { server: 'third' },
    })
    expect(files).toEqual([at('a'), at('b'), at('d')])
    expect(missing).toEqual([at('none')])
    expect(warnings).toEqual([])
  })

  test('keeps unknown fields and extensions, those of the first file first', async () => {
    await put('a', 'x: 1\nextensions: [{name: e, extension: 1}]')
    await put('b', 'x: 2\nz: 3\nextensions: [{name: e, extension: 2}, {name: f, extension: 3}]')
    const { config } = await loadKubeconfig({ kubeconfig: list('a', 'b'), home })
    expect(config.unknown).toEqual({ x: 1, z: 3 })
    expect(Object.fromEntries(config.extensions ?? [])).toEqual({ e: 1, f: 3 })
  })

  test('falls back to the home directory when KUBECONFIG says nothing', async () => {
    await mkdir(at('.kube'))
    await put('.kube/config', 'current-context: home')
    for (const kubeconfig of [undefined, '', delimiter]) {
      const loaded = await loadKubeconfig({ kubeconfig, home })
      expect(loaded.config.currentContext).toBe('home')
    }
  })

  test('finds nothing without an error, except where a file was asked for [CRED-K1]', async () => {
    const loaded = await loadKubeconfig({ home })
    expect(loaded).toMatchObject({ files: [], missing: [at('.kube/config')], warnings: [] })
    expect(loaded.config.clusters.size).toBe(0)
    await expect(
      loadKubeconfig({ explicitPath: at('none'), kubeconfig: list('a'), home }),
    ).rejects.toMatchObject({
      code: 'KUBECONFIG_MISSING',
      message: expect.stringContaining('none'),
    })
  })

  test('warns when no file of the list is there [CRED-K1]', async () => {
    const { config, warnings } = await loadKubeconfig({ kubeconfig: list('x', 'y'), home })
    expect(config.contexts.size).toBe(0)
    expect(warnings).toEqual([`no file that KUBECONFIG names exists: ${at('x')}, ${at('y')}`])
  })

  test('knows the file that a user came from, which is the first [CRED-K2]', async () => {
    const users = (...names: string[]) =>
      `users: [${names.map((name) => `{name: ${name}, user: {}}`).join()}]`
    const context = 'contexts: [{name: main, context: {cluster: c, user: u}}]'
    await put('a', '')
    await put('b', `${users('u')}\n${context}\n${cluster('c', 'https://a')}`)
    await put('d', `current-context: main\n${users('u', 'v')}`)
    const sources = { kubeconfig: list('a', 'b', 'd'), home }
    const { userFiles, clusterFiles } = await loadKubeconfig(sources)
    expect(Object.fromEntries(clusterFiles)).toEqual({ c: at('b') })
    expect(Object.fromEntries(userFiles)).toEqual({ u: at('b'), v: at('d') })
    expect(await loadContext(sources)).toMatchObject({ userName: 'u', userFile: at('b') })
    await expect(loadContext(sources, 'other')).rejects.toThrow('"other" does not exist')
  })

  test('reads the explicit file alone', async () => {
    await put('a', 'current-context: a')
    await put('b', 'current-context: b')
    const loaded = await loadKubeconfig({ explicitPath: at('b'), kubeconfig: list('a'), home })
    expect(loaded.config.currentContext).toBe('b')
    expect(loaded.files).toEqual([at('b')])
  })

  test('takes relative files to be beside the kubeconfig that names them [CRED-K3]', async () => {
    await put(
      'sub/a',
      `${cluster('c', 's', ', certificate-authority: ca.crt')}
users:
- {name: rel, user: {client-certificate: ../u.crt, client-key: u.key, tokenFile: t, exec: {command: ./login}}}
- {name: abs, user: {client-key: /etc/u.key, exec: {command: login}}}`,
    )
    const { config } = await loadKubeconfig({ kubeconfig: list('sub/a'), home })
    expect(config.clusters.get('c')?.certificateAuthority).toBe(at('sub/ca.crt'))
    expect(config.users.get('rel')).toMatchObject({
      clientCertificate: at('u.crt'),
      clientKey: at('sub/u.key'),
      tokenFile: at('sub/t'),
      exec: { command: at('sub/login') },
    })
    expect(config.users.get('abs')).toMatchObject({
      clientKey: '/etc/u.key',
      exec: { command: 'login' },
    })
  })

  test('never looks up in PATH what lies beside a kubeconfig that is itself named by a relative path [CRED-K3]', async () => {
    await put('a', 'users: [{name: u, user: {tokenFile: t, exec: {command: ./login}}}]')
    const { config } = await loadKubeconfig({
      explicitPath: relative(process.cwd(), at('a')),
      home,
    })
    expect(config.users.get('u')).toMatchObject({
      tokenFile: at('t'),
      exec: { command: at('login') },
    })
  })

  test('reports the problems of all files together [CRED-K2, CRED-K4]', async () => {
    await put('a', 'kind: Pod')
    await put('b', 'users: x\ncontexts: y z')
    await expect(loadKubeconfig({ kubeconfig: list('a', 'b'), home })).rejects.toMatchObject({
      code: 'KUBECONFIG_INVALID',
      problems: [
        `${at('a')}: kind must be Config: this is not a kubeconfig`,
        `${at('b')}: users must be a list, not a string`,
        `${at('b')}: contexts must be a list, not a string`,
      ],
    })
  })

  test('says which file cannot be read', async () => {
    await expect(loadKubeconfig({ kubeconfig: list('sub'), home })).rejects.toMatchObject({
      code: 'KUBECONFIG_UNREADABLE',
      message: `cannot read the kubeconfig ${at('sub')}: EISDIR`,
    })
  })
})

describe('writing', () => {
  const config = makeKubeconfig({
    clusterName: 'c',
    server: 'https://a',
    caPem: 'ca',
    userName: 'jane',
    token: new Secret('t'),
  })
  const modeOf = async (name: string) => (await stat(at(name))).mode & 0o777

  test('makes a file for its owner alone, and what is missing of its path [GND-R77]', async () => {
    await writeKubeconfig(at('new/dir/config'), config)
    expect(await modeOf('new/dir/config')).toBe(0o600)
    expect(await modeOf('new/dir')).toBe(0o700)
    const loaded = await loadKubeconfig({ explicitPath: at('new/dir/config'), home })
    expect(loaded.config).toEqual(config)
  })

  test('replaces a file that others could read by one that they cannot', async () => {
    await writeFile(at('config'), 'old', { mode: 0o644 })
    await writeKubeconfig(at('config'), config)
    expect(await modeOf('config')).toBe(0o600)
  })

  test('replaces a link instead of writing through it', async () => {
    await put('victim', 'precious')
    await symlink(at('victim'), at('config'))
    await writeKubeconfig(at('config'), config)
    expect(await readFile(at('victim'), 'utf8')).toBe('precious')
  })

  test('fails with a sentence, and leaves nothing behind', async () => {
    await put('file', 'x')
    await expect(writeKubeconfig(at('file/config'), config)).rejects.toMatchObject({
      code: 'KUBECONFIG_UNWRITABLE',
      message: expect.stringContaining('file/config'),
    })
    await mkdir(at('taken/config'), { recursive: true })
    await expect(writeKubeconfig(at('taken/config'), config)).rejects.toThrow('EISDIR')
    expect(await readdir(at('taken'))).toEqual(['config'])
  })
})
