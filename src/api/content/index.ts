export {
  type DecodedBody,
  type FieldValidation,
  fieldValidationLevels,
  fieldValidationOf,
  readPatched,
} from './checked-object.ts'
export { decodeBody, decodeOptions, supportedMediaTypes } from './decode-body.ts'
export { type ParsedJson, parseJson } from './json.ts'
export { inlineWorkLimits, maxWork, maxWorkLimits } from './limits.ts'
