import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { PluginHost, Runnable } from './plugin.ts'
import { freshDirectory, labHost, writeProgram } from './plugin-lab.suite.ts'
import { resolveCommand } from './resolve-command.ts'

const script = '#!/bin/sh\n'

describe('on systems with one root', () => {
  test('a bare name is the first executable file of that name in PATH [CRED-S3]', async () => {
    const [first, second, third] = [freshDirectory(), freshDirectory(), freshDirectory()]
    mkdirSync(join(first, 'plugin'))
    writeProgram(second, 'plugin', script, 0o644)
    writeProgram(third, 'plugin', script)
    const host = labHost({ env: { PATH: `/does/not/exist:${first}:${second}:${third}` } })
    expect(await resolveCommand('plugin', host)).toEqual({ path: join(third, 'plugin') })
  })

  test('a file without execute rights is named if there is no other [CRED-S3]', async () => {
    const directory = freshDirectory()
    writeProgram(directory, 'plugin', script, 0o644)
    const found = await resolveCommand('plugin', labHost({ env: { PATH: directory } }))
    expect(found).toMatchObject({ problem: 'NOT_EXECUTABLE' })
    expect(JSON.stringify(found)).toContain(directory)
  })

  test.each(['.', '', 'bin/..', '..//x/..'])(
    'a hit by the relative PATH entry "%s" is refused [CRED-S3]',
    async (entry) => {
      const cwd = freshDirectory()
      writeProgram(cwd, 'plugin', script)
      mkdirSync(join(cwd, 'bin'))
      const elsewhere = freshDirectory()
      writeProgram(elsewhere, 'plugin', script)
      const host = labHost({
        cwd: entry.startsWith('..//') ? join(cwd, 'bin') : cwd,
        env: { PATH: `${entry}:${elsewhere}` },
      })
      expect(await resolveCommand('plugin', host)).toMatchObject({
        problem: 'NOT_FOUND',
        why: expect.stringContaining('relative PATH entry'),
      })
    },
  )

  test('relative PATH entries without a hit do not matter [CRED-S3]', async () => {
    const directory = freshDirectory()
    writeProgram(directory, 'plugin', script)
    const host = labHost({ cwd: freshDirectory(), env: { PATH: `.::${directory}` } })
    expect(await resolveCommand('plugin', host)).toEqual({ path: join(directory, 'plugin') })
  })

  test('a file in the current directory is no command [CRED-S3]', async () => {
    const cwd = freshDirectory()
    writeProgram(cwd, 'plugin', script)
    for (const env of [{}, { PATH: '' }, { PATH: '/usr/bin' }]) {
      expect(await resolveCommand('plugin', labHost({ cwd, env }))).toMatchObject({
        problem: 'NOT_FOUND',
      })
    }
  })

  test('a relative path has no origin here and is refused [CRED-S3]', async () => {
    const cwd = freshDirectory()
    writeProgram(cwd, 'plugin', script)
    expect(await resolveCommand('./plugin', labHost({ cwd }))).toMatchObject({
      problem: 'CONFIG_INVALID',
    })
  })

  test.each(['~/plugin', '$HOME/plugin'])('%s is not expanded [CRED-E8]', async (command) => {
    const home = freshDirectory()
    writeProgram(home, 'plugin', script)
    const host = labHost({ cwd: home, env: { HOME: home, PATH: home } })
    expect(await resolveCommand(command, host)).toMatchObject({ problem: 'CONFIG_INVALID' })
  })

  test('the PATH of a desktop program comes with a tip [CRED-E13]', async () => {
    const host = labHost({ env: { PATH: '/usr/bin:/bin:/usr/sbin:/sbin' } })
    const found = await resolveCommand('no-such-plugin', host)
    expect(JSON.stringify(found)).toContain('desktop')
    const other = await resolveCommand('no-such-plugin', labHost({ env: { PATH: '/usr/bin' } }))
    expect(JSON.stringify(other)).not.toContain('desktop')
  })

  test('whatever PATH is, only an absolute, clean path of that name comes out [CRED-I10]', async () => {
    const entry = fc.constantFrom('', '.', '..', 'a', '/', '/a', '/a/../b', './/', '/a b', '//c//')
    const isSound = async (path: readonly string[], name: string): Promise<boolean> => {
      const lookAt = (): Promise<Runnable> => Promise.resolve('runnable')
      const host = labHost({ env: { PATH: path.join(':') }, cwd: '/work', lookAt })
      const found = await resolveCommand(name, host)
      return !('path' in found) || /^\/(?!.*(\/\/|\/\.\/|\/\.\.\/))/.test(found.path)
    }
    const name = fc.constantFrom('plugin', 'a', '..')
    const report = await fc.check(fc.asyncProperty(fc.array(entry), name, isSound))
    expect(report.counterexample).toBeNull()
  })
})

describe('on Windows', () => {
  const windows = (files: readonly string[], env: PluginHost['env']): PluginHost =>
    labHost({
      platform: 'win32',
      cwd: 'C:\\work',
      env,
      lookAt: (path) =>
        Promise.resolve(
          files.some((file) => file.toLowerCase() === path.toLowerCase()) ? 'runnable' : 'missing',
        ),
    })

  test.each([
    ['the endings of PATHEXT are tried in order', 'aws', ['C:\\b\\aws.exe'], 'C:\\b\\aws.EXE'],
    ['a name with an ending stands for itself', 'aws.exe', ['C:\\b\\aws.exe'], 'C:\\b\\aws.exe'],
    ['absolute paths too', 'C:\\x\\aws', ['C:\\x\\aws.com'], 'C:\\x\\aws.COM'],
    ['quoted entries count', 'tsh', ['C:\\p;q\\tsh.exe'], 'C:\\p;q\\tsh.EXE'],
  ])('%s [CRED-S3]', async (_claim, command, files, path) => {
    const host = windows(files, { Path: 'C:\\a;C:\\b;"C:\\p;q"', PATHEXT: '.COM;.EXE;.BAT' })
    expect(await resolveCommand(command, host)).toEqual({ path })
  })

  test('a program in the current directory is not found [CRED-S3]', async () => {
    const host = windows(['C:\\work\\aws.exe'], { PATH: 'C:\\a' })
    expect(await resolveCommand('aws', host)).toMatchObject({ problem: 'NOT_FOUND' })
  })

  test.each(['C:\\a\\az.cmd', 'C:\\a\\az.BAT'])('%s is refused [CRED-S2]', async (file) => {
    expect(await resolveCommand('az', windows([file], { PATH: 'C:\\a' }))).toMatchObject({
      problem: 'NOT_EXECUTABLE',
      why: expect.stringContaining('batch file'),
    })
  })
})
