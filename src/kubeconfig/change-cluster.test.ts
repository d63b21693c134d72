import { mkdtemp, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { systemClock } from '../core/index.ts'
import { withLocation } from './cluster-location.ts'
import { changeCluster } from './edit.ts'
import type { Cluster } from './kubeconfig.ts'

const text = `# my clusters
apiVersion: v1
kind: Config
current-context: main # the usual one
clusters:
# at home
- name: home
  cluster:
    server: https://home:6443
# at work
- cluster:
    # ask Ada about it
    certificate-authority-data: b2xk # expires in May
    server: https://work:6443
    tls-server-name: work
  name: work
contexts:
- {name: main, context: {cluster: work, user: me}}
users:
- name: me
  user:
    token: "0123" # a secret
    something-new: [1, 2]
`

let directory: string
let path: string
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sallyport-change-cluster-'))
  path = join(directory, 'config')
  await writeFile(path, text, { mode: 0o644 })
})
afterEach(() => rm(directory, { recursive: true, force: true }))

const parts = { clock: systemClock, signal: new AbortController().signal }
const moved = (cluster: Cluster): Cluster =>
  withLocation(cluster, {
    addresses: ['https://work:6443', 'https://spare:6443'],
    rootsPem: 'new',
    clusterId: 'abc',
  })

describe('a change of a cluster entry [DISC-C10]', () => {
  test('leaves other entries, comments and order alone', async () => {
    expect(await changeCluster({ path, name: 'work' }, moved, parts)).toBe(true)
    const expected = text.replace('b2xk # expires in May', 'bmV3').replace(
      '    tls-server-name: work\n',
      `    tls-server-name: work
    extensions:
      - name: sallyport.dev/cluster-location
        extension:
          addresses:
            - https://work:6443
            - https://spare:6443
          clusterId: abc
`,
    )
    const written = await readFile(path, 'utf8')
    // The library indents lists in its own way; nothing else may differ.
    const loose = (yaml: string): string => yaml.replaceAll(/[ \n[\]{}]+/g, ' ')
    expect(loose(written)).toBe(loose(expected))
    expect((await stat(path)).mode & 0o777).toBe(0o600)
  })

  test('that changes nothing does not touch the file', async () => {
    expect(await changeCluster({ path, name: 'work' }, () => undefined, parts)).toBe(false)
    expect(await readFile(path, 'utf8')).toBe(text)
    expect((await stat(path)).mode & 0o777).toBe(0o644)
  })

  test('goes to the file behind a link', async () => {
    const link = join(directory, 'link')
    await symlink(path, link)
    await changeCluster({ path: link, name: 'work' }, moved, parts)
    expect(await readFile(path, 'utf8')).toContain('https://spare:6443')
  })

  test('reaches an entry that is an alias, by writing the file anew', async () => {
    await writeFile(path, text.replace('cluster:\n    # ask', 'cluster: &w\n    # ask'))
    const aliased = (await readFile(path, 'utf8')).replace(
      '- name: home\n  cluster:\n    server: https://home:6443\n',
      '',
    )
    const twice = aliased.replace('  name: work\n', '  name: work\n- {name: again, cluster: *w}\n')
    await writeFile(path, twice)
    await changeCluster({ path, name: 'again' }, moved, parts)
    const written = await readFile(path, 'utf8')
    expect(written).toContain('https://spare:6443')
    expect(written).toContain('b2xk')
  })

  test('waits for another process and leaves no lock behind', async () => {
    await writeFile(`${path}.lock`, '')
    const changing = changeCluster({ path, name: 'work' }, moved, parts)
    await rm(`${path}.lock`)
    expect(await changing).toBe(true)
    await expect(stat(`${path}.lock`)).rejects.toThrow('ENOENT')
  })

  test('of an entry that is gone fails and changes nothing', async () => {
    await expect(changeCluster({ path, name: 'none' }, moved, parts)).rejects.toMatchObject({
      code: 'NO_SUCH_CLUSTER',
    })
    expect(await readFile(path, 'utf8')).toBe(text)
  })
})
