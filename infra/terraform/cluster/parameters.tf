# Made by `make terraform` from tools/release/options.py.
locals {
  parameters = {
    AlarmTopic           = var.alarm_topic
    MaxPricePerHour      = var.max_price_per_hour
    ForwarderImage       = var.forwarder_image
    ImageOwners          = join(",", var.image_owners)
    OwnImages            = var.own_images
    LaunchResources      = join(",", var.launch_resources)
    ImageParameters      = join(",", var.image_parameters)
    KmsKeys              = join(",", var.kms_keys)
    MetadataHopLimit     = var.metadata_hop_limit
    MetadataTokens       = var.metadata_tokens
    PreferencePolicy     = var.preference_policy
    Drift                = var.drift
    CniRole              = var.cni_role
    Ssm                  = var.ssm
    InsideAccessEntry    = var.inside_access_entry
    LaunchAccessEntry    = var.launch_access_entry
    NodesAccessEntry     = var.nodes_access_entry
    TerminateAccessEntry = var.terminate_access_entry
    NodeRole             = var.node_role
    Migrators            = join(",", var.migrators)
  }
}

variable "alarm_topic" {
  description = "ARN of an SNS topic that alarms are sent to"
  type        = string
  default     = ""
}

variable "max_price_per_hour" {
  description = "most dollars an hour that the cluster's nodes may cost together, or none"
  type        = string
}

variable "forwarder_image" {
  description = "the forwarder's image, as <registry>/dovetail/forwarder:<tag>"
  type        = string
}

variable "image_owners" {
  description = "accounts, besides Amazon and this one, whose AMIs may run"
  type        = list(string)
  default     = []
}

variable "own_images" {
  description = "which AMIs of this account may be launched"
  type        = string
  default     = "tagged"

  validation {
    condition     = contains(["tagged", "all"], var.own_images)
    error_message = "own_images: give one of tagged, all."
  }
}

variable "launch_resources" {
  description = "ARNs of what launches may use without a tag of the cluster"
  type        = list(string)
  default     = []
}

variable "image_parameters" {
  description = "ARNs of SSM parameters that name AMIs of your own"
  type        = list(string)
  default     = []
}

variable "kms_keys" {
  description = "ARNs of customer managed keys that volumes may be encrypted with"
  type        = list(string)
  default     = []
}

variable "metadata_hop_limit" {
  description = "most hops that an answer of the metadata service takes"
  type        = string
  default     = "2"
}

variable "metadata_tokens" {
  description = "whether IMDSv2 is required"
  type        = string
  default     = "required"

  validation {
    condition     = contains(["required", "optional"], var.metadata_tokens)
    error_message = "metadata_tokens: give one of required, optional."
  }
}

variable "preference_policy" {
  description = "what becomes of what pods prefer"
  type        = string
  default     = "Weigh"

  validation {
    condition     = contains(["Weigh", "Respect", "Ignore"], var.preference_policy)
    error_message = "preference_policy: give one of Weigh, Respect, Ignore."
  }
}

variable "drift" {
  description = "whether drifted nodes of Provisioners are replaced"
  type        = string
  default     = "off"

  validation {
    condition     = contains(["off", "on"], var.drift)
    error_message = "drift: give one of off, on."
  }
}

variable "cni_role" {
  description = "whose role the network plugin uses"
  type        = string
  default     = "node"

  validation {
    condition     = contains(["node", "own"], var.cni_role)
    error_message = "cni_role: give one of node, own."
  }
}

variable "ssm" {
  description = "whether operators open sessions on nodes"
  type        = string
  default     = "off"

  validation {
    condition     = contains(["off", "on"], var.ssm)
    error_message = "ssm: give one of off, on."
  }
}

variable "inside_access_entry" {
  description = "whether the stack makes the access entry `inside` or another tool manages it"
  type        = string
  default     = "made"

  validation {
    condition     = contains(["made", "exists"], var.inside_access_entry)
    error_message = "inside_access_entry: give one of made, exists."
  }
}

variable "launch_access_entry" {
  description = "whether the stack makes the access entry `launch` or another tool manages it"
  type        = string
  default     = "made"

  validation {
    condition     = contains(["made", "exists"], var.launch_access_entry)
    error_message = "launch_access_entry: give one of made, exists."
  }
}

variable "nodes_access_entry" {
  description = "whether the stack makes the access entry `nodes` or another tool manages it"
  type        = string
  default     = "made"

  validation {
    condition     = contains(["made", "exists"], var.nodes_access_entry)
    error_message = "nodes_access_entry: give one of made, exists."
  }
}

variable "terminate_access_entry" {
  description = "whether the stack makes the access entry `terminate` or another tool manages it"
  type        = string
  default     = "made"

  validation {
    condition     = contains(["made", "exists"], var.terminate_access_entry)
    error_message = "terminate_access_entry: give one of made, exists."
  }
}

variable "node_role" {
  description = "a role of your own that nodes may have"
  type        = string
  default     = ""
}

variable "migrators" {
  description = "ARNs of roles and users that may run dovetail migrate"
  type        = list(string)
  default     = []
}
