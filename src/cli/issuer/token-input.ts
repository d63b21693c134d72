import { createReadStream } from 'node:fs'
import { stdin } from 'node:process'
import { CommandFailed, systemErrorCode, WrongUsage } from '../../core/index.ts'

/** More than this is no token, and nobody has to read it to its end. */
const mostBytes = 64 * 1024

/** Where a command finds the token that it is about. */
export interface TokenInput {
  /** The token itself, or `-` for standard input. */
  readonly argument: string | undefined
  readonly file: string | undefined
}

/** Reads the token from the one place that was named; ends of lines around it do not count. */
export async function readTokenInput({ argument, file }: TokenInput): Promise<string> {
  if ((argument === undefined) === (file === undefined))
    throw new WrongUsage('give one of TOKEN, - for standard input, and --token-file')
  const text = file === undefined ? await fromArgument(argument ?? '') : await fromFile(file)
  const token = text.trim()
  if (token === '') throw new CommandFailed('TOKEN_MISSING', 'there is no token to look at')
  return token
}

async function fromArgument(argument: string): Promise<string> {
  return argument === '-' ? beginningOf(stdin.setEncoding('utf8')) : argument
}

async function beginningOf(stream: AsyncIterable<string>): Promise<string> {
  let text = ''
  for await (const chunk of stream) {
    text += chunk
    if (text.length > mostBytes) break
  }
  return text
}

async function fromFile(path: string): Promise<string> {
  return beginningOf(createReadStream(path, 'utf8')).catch((cause: unknown) => {
    const why = systemErrorCode(cause) ?? 'unknown error'
    throw new CommandFailed('TOKEN_UNREADABLE', `cannot read ${path}: ${why}`, { cause })
  })
}
