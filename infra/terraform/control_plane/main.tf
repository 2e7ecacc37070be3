# The control plane: one for each account and Region.
terraform {
  required_version = ">= 1.5"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.0"
    }
  }
}

variable "bucket" {
  description = "name of a bucket in the same Region, for the functions' code and the template"
  type        = string
}

variable "region" {
  description = "the Region, as the provider has it"
  type        = string
}

variable "settings" {
  description = "settings of the functions, by their names in docs/settings.md"
  type        = map(string)
  default     = {}
}

locals {
  # Beside this folder, where the assembly was unpacked.
  assembly = "${path.module}/../.."
  code     = "${local.assembly}/functions.zip"
  template = "${local.assembly}/control_plane.template.json"
  settings = {
    for name, value in var.settings :
    join("", [for word in split("_", name) : title(word)]) => value
  }
}

resource "aws_s3_object" "code" {
  bucket = var.bucket
  # CloudFormation takes new code where the key is another.
  key    = "dovetail/${filesha256(local.code)}.zip"
  source = local.code
}

resource "aws_s3_object" "template" {
  bucket = var.bucket
  key    = "dovetail/${filesha256(local.template)}.template.json"
  source = local.template
}

resource "aws_cloudformation_stack" "this" {
  name         = "DovetailControlPlane"
  template_url = "https://${var.bucket}.s3.${var.region}.amazonaws.com/${aws_s3_object.template.key}"
  capabilities = ["CAPABILITY_NAMED_IAM"]

  parameters = merge(local.parameters, local.settings, {
    CodeBucket = var.bucket
    CodeKey    = aws_s3_object.code.key
  })
}

output "outputs" {
  description = "BusName, LedgerTable, ArchiveBucket, WakeQueueUrl and others"
  value       = aws_cloudformation_stack.this.outputs
}
