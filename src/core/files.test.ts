import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmod,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { readFileIfPresent, replaceFile } from './files.ts'

let directory: string
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'files-'))
})

test('a file that is not there reads as undefined, one that cannot be read is an error', async () => {
  expect(await readFileIfPresent(join(directory, 'none'))).toBeUndefined()
  await expect(readFileIfPresent(directory)).rejects.toMatchObject({ code: 'EISDIR' })
})

test('a replaced file has the new content and exactly the mode asked for', async () => {
  const path = join(directory, 'key')
  await writeFile(path, 'old and longer')
  await chmod(path, 0o644)
  await replaceFile(path, 'new', 0o600)
  expect(await readFile(path, 'utf8')).toBe('new')
  expect((await stat(path)).mode & 0o777).toBe(0o600)
  expect(await readdir(directory)).toEqual(['key'])
})

test('what cannot take the place of the old file leaves nothing behind', async () => {
  const path = join(directory, 'taken')
  await mkdir(path)
  await writeFile(join(path, 'inside'), '')
  await expect(replaceFile(path, 'new', 0o600)).rejects.toMatchObject({ syscall: 'rename' })
  expect(await readdir(directory)).toEqual(['taken'])
})

const specialFiles: Readonly<Record<string, (path: string) => Promise<unknown>>> = {
  'a named pipe': async (path) => execFileSync('mkfifo', [path]),
  'a socket': (path) => once(createServer().listen(path).unref(), 'listening'),
  'a link to a device': (path) => symlink('/dev/null', path),
  'a link to a named pipe': async (path) => {
    execFileSync('mkfifo', [`${path}.pipe`])
    await symlink(`${path}.pipe`, path)
  },
}

test.each(Object.entries(specialFiles))('%s is not replaced [SEC-R2455]', async (_name, make) => {
  const path = join(directory, 'special')
  await make(path)
  const before = [await readdir(directory), (await lstat(path)).ino]
  await expect(replaceFile(path, 'key', 0o600)).rejects.toMatchObject({ code: 'EINVAL' })
  expect([await readdir(directory), (await lstat(path)).ino]).toEqual(before)
})

test('a link is replaced, and what it leads to stays [SEC-R2455]', async () => {
  const [target, path] = [join(directory, 'target'), join(directory, 'link')]
  await writeFile(target, 'other')
  await symlink(target, path)
  await replaceFile(path, 'key', 0o600)
  expect((await lstat(path)).isFile()).toBe(true)
  expect(await readFile(target, 'utf8')).toBe('other')
})
