import { mkdir, readdir, readFile, readlink, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { systemClock } from '../../core/index.ts'
import { scratchDirectory } from '../scratch.suite.ts'
import { ProjectedDirectory } from './projected-directory.ts'

async function projected() {
  const root = await scratchDirectory()
  const path = join(root, 'serviceaccount')
  return { root, path, directory: await ProjectedDirectory.create(path, systemClock) }
}

const version = (number: number): ReadonlyMap<string, string> =>
  new Map([
    ['token', `token ${number}`],
    ['ca.crt', `ca ${number}`],
  ])

const visible = async (path: string) =>
  (await readdir(path)).filter((name) => !name.startsWith('..')).toSorted()

describe('a projected directory', () => {
  test('is laid out as the kubelet does it [ISS-W2]', async () => {
    const { path, directory } = await projected()
    await directory.replace(version(1))
    const data = await readlink(join(path, '..data'))
    expect(data).toMatch(/^\.\.\d{4}(_\d\d){5}\.\d+$/)
    expect(await readlink(join(path, 'token'))).toBe('..data/token')
    expect(await readFile(join(path, 'token'), 'utf8')).toBe('token 1')
    expect((await readdir(path)).toSorted()).toEqual([data, '..data', 'ca.crt', 'token'].toSorted())
  })

  test('is for nobody but its owner [ISS-W2]', async () => {
    const { path, directory } = await projected()
    await directory.replace(version(1))
    const modes = await Promise.all(
      [path, join(path, '..data/'), join(path, 'token')].map(async (each) =>
        ((await stat(each)).mode & 0o777).toString(8),
      ),
    )
    expect(modes).toEqual(['700', '700', '600'])
  })

  test('changes all at once: whoever holds the old directory has the old files [ISS-W3]', async () => {
    const { path, directory } = await projected()
    await directory.replace(version(1))
    const seen = new Set<string>()
    let done = false
    const reading = (async () => {
      while (!done) {
        const data = await readlink(join(path, '..data'))
        const read = (name: string) => readFile(join(path, data, name), 'utf8').catch(() => 'gone')
        const [token, ca] = [await read('token'), await read('ca.crt')]
        if (token !== 'gone' && ca !== 'gone') seen.add(`${token} ${ca}`)
        expect(await readFile(join(path, 'token'), 'utf8').catch(() => 'token')).toMatch(/^token/)
      }
    })()
    for (let number = 2; number <= 60; number++) await directory.replace(version(number))
    done = true
    await reading
    expect(seen.size).toBeGreaterThan(1)
    for (const pair of seen) expect(pair).toMatch(/^token (\d+) ca \1$/)
    expect(await readFile(join(path, 'token'), 'utf8')).toBe('token 60')
  })

  test('keeps no old version', async () => {
    const { path, directory } = await projected()
    for (let number = 1; number <= 5; number++) await directory.replace(version(number))
    expect((await readdir(path)).filter((name) => name.startsWith('..20'))).toHaveLength(1)
    expect(await visible(path)).toEqual(['ca.crt', 'token'])
  })

  test('must be new', async () => {
    const { path } = await projected()
    await expect(ProjectedDirectory.create(path, systemClock)).rejects.toMatchObject({
      code: 'EEXIST',
    })
  })
})

describe('links that somebody else has put there', () => {
  test.each(['..data', '..data_tmp', 'token', 'token_tmp'])(
    '%s leads to no other place [ISS-W2]',
    async (name) => {
      const { root, path, directory } = await projected()
      await directory.replace(version(1))
      const precious = join(root, 'precious')
      await mkdir(precious)
      await writeFile(join(precious, 'token'), 'mine')
      await rm(join(path, name), { recursive: true, force: true })
      await symlink(precious, join(path, name))
      await directory.replace(version(2))
      expect(await readFile(join(precious, 'token'), 'utf8')).toBe('mine')
      expect(await readdir(precious)).toEqual(['token'])
      expect(await readFile(join(path, 'token'), 'utf8')).toBe('token 2')
    },
  )
})
