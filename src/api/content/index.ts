export { decodeBody, decodeOptions } from './decode-body.ts'
export {
  type FieldValidation,
  fieldValidationLevels,
  fieldValidationOf,
} from './field-validation.ts'
export { type ParsedJson, parseJson } from './json-text.ts'
export { supportedMediaTypes } from './media-types.ts'
export { type PatchedOptions, readPatched } from './patched-object.ts'
