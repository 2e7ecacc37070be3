# What the control plane needs for one EKS cluster.
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
  description = "name of a bucket in the same Region, for the template"
  type        = string
}

variable "region" {
  description = "the Region, as the provider has it"
  type        = string
}

variable "cluster" {
  description = "name of the EKS cluster"
  type        = string

  validation {
    # Names of roles have 64 characters.
    condition     = can(regex("^[0-9A-Za-z][A-Za-z0-9_-]{0,29}$", var.cluster))
    error_message = "cluster: give a name of at most 30 characters; a longer one needs the CDK."
  }
}

locals {
  # Keys of IAM conditions have the name, and no parameter can stand in a key.
  template = replace(
    file("${path.module}/../../cluster.template.json"), "CLUSTER-NAME", var.cluster
  )
}

resource "aws_s3_object" "template" {
  bucket  = var.bucket
  key     = "dovetail/${sha256(local.template)}.template.json"
  content = local.template
}

resource "aws_cloudformation_stack" "this" {
  name         = "DovetailCluster-${replace(var.cluster, "_", "-")}"
  template_url = "https://${var.bucket}.s3.${var.region}.amazonaws.com/${aws_s3_object.template.key}"
  capabilities = ["CAPABILITY_NAMED_IAM"]
  parameters   = local.parameters
}

output "outputs" {
  description = "InstanceProfile and ForwarderRole"
  value       = aws_cloudformation_stack.this.outputs
}
